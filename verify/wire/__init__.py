"""What goes to the harness and comes back: runs, packs, fills, byte spans, expected answers."""
