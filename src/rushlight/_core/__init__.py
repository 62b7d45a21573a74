"""What all of the package stands on: how ops are composed, found and described, grad mode, types, conversions."""
