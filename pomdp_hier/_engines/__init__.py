"""Vectorised engines that compute where the search for each item stops. Independent of the POMDP framework."""
