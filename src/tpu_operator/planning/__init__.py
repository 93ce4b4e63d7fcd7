"""What to do next: snapshot in, plan out, pure."""
