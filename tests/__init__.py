"""The tests, in folders that mirror the rooms of the package; what they share stands in `helpers`."""
