package etcdmember

import (
	"context"
	"time"
)

// errand is one call beside the leader that may take minutes, such as a defragmentation. It runs beside the ticks, one
// at a time, and its result is taken by the tick that finds it ended: only ticks change what the others see.
type errand struct {
	step   string
	done   chan struct{}
	cancel context.CancelFunc
	err    error
	// finish is what the tick does with a result, at its own time.
	finish func(now time.Time, err error)
}

// runs: there is one whose result has not been taken.
func (e *errand) runs() bool { return e != nil && e.done != nil }

// ended: there is one, and its result waits.
func (e *errand) ended() bool {
	if !e.runs() {
		return false
	}
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// startErrand begins one. The caller has made sure that none runs.
func startErrand(step string, do func(context.Context) error, finish func(time.Time, error)) *errand {
	ctx, cancel := context.WithTimeout(context.Background(), errandTimeout)
	e := &errand{step: step, done: make(chan struct{}), cancel: cancel, finish: finish}
	go func() {
		defer close(e.done)
		e.err = do(ctx)
	}()
	return e
}

// drop breaks an errand off, whatever it has come to, and waits for its end.
func (e *errand) drop() {
	if e.runs() {
		e.cancel()
		<-e.done
	}
}
