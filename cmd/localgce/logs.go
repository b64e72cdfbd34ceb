package main

import (
	"context"
	"io"
	"time"
)

// copyLog copies what is there and, if asked to follow, what comes, until the context ends.
func copyLog(ctx context.Context, out io.Writer, log io.Reader, follow bool) error {
	const poll = 200 * time.Millisecond // a person reads along
	for {
		if _, err := io.Copy(out, log); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(poll):
		}
	}
}
