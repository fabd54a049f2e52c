"""The exchange with the harness: runs, packs, fills, byte spans, outputs, expected intervals."""
