"""Where every item's search stops, all items at once, in arrays. It has never heard of POMDPs."""
