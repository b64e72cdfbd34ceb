package gce

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorate/quorate/internal/backoff"
)

const (
	// defaultWait is long enough for a metadata server or API front end that restarts, and short enough for a boot.
	defaultWait = 30 * time.Second
	// triesPerWait: a server that takes a connection and says nothing is left after this part of the wait.
	triesPerWait = 6

	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second
)

// errNoAnswer stands for a try that ran out of its time, which a context error would not say so plainly.
var errNoAnswer = errors.New("no answer")

// finalError is an error that another try would meet again.
type finalError struct{ err error }

func (e finalError) Error() string { return e.err.Error() }
func (e finalError) Unwrap() error { return e.err }

// Final is the mark by which a user of Client or UserClient knows such an error.
func (e finalError) Final() {}

// retry calls try until it succeeds, fails with a finalError, or the wait is over. asked and server are for the error.
func retry(ctx context.Context, wait time.Duration, server, asked string, try func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	pause := backoff.Backoff{First: firstPause, Most: maxPause}
	for tries := 1; ; tries++ {
		err := tryOnce(bounded, wait/triesPerWait, try)
		if err == nil {
			return nil
		}
		if final := (finalError{}); errors.As(err, &final) {
			return fmt.Errorf("ask %s for %s: %w", server, asked, final.err)
		}
		if backoff.Sleep(bounded, pause.Next()) == nil {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("ask %s for %s: %w (last try: %w)", server, asked, context.Cause(ctx), err)
		}
		return fmt.Errorf("ask %s for %s: gave up after %s and %d tries: %w", server, asked, wait, tries, err)
	}
}

func tryOnce(ctx context.Context, limit time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := try(ctx)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) && !errors.As(err, new(finalError)) {
		return fmt.Errorf("%w within %s", errNoAnswer, limit)
	}
	return err
}

// maxShown keeps a server's page out of our one line.
const maxShown = 120

func shorten(s string) string {
	if len(s) > maxShown {
		return s[:maxShown] + "…"
	}
	return s
}
