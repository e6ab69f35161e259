"""An offline solver with a bound on either side: alpha vectors below, belief points above."""
