"""What tests share: a naive referee, random games, re-deals, small networks, broken agents."""
