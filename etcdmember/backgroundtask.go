package etcdmember

import (
	"context"
	"time"
)

// backgroundTask is one call of the leader loop that may take minutes, such as a defragmentation. The ticks go on
// meanwhile, one task runs at a time, and its result is taken by the tick that finds it ended: only ticks change what
// the others see.
type backgroundTask struct {
	step   string
	done   chan struct{}
	cancel context.CancelFunc
	err    error
	// finish is what the tick does with a result, at its own time.
	finish func(now time.Time, err error)
}

// runs: there is one whose result has not been taken.
func (t *backgroundTask) runs() bool { return t != nil && t.done != nil }

// ended: there is one, and its result waits.
func (t *backgroundTask) ended() bool {
	if !t.runs() {
		return false
	}
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}

// take gives the result of a task that has ended to finish.
func (t *backgroundTask) take(now time.Time) error {
	t.cancel()
	t.finish(now, t.err)
	return t.err
}

// startTask begins one. The caller has made sure that none runs.
func startTask(step string, do func(context.Context) error, finish func(time.Time, error)) *backgroundTask {
	ctx, cancel := context.WithTimeout(context.Background(), taskTimeout)
	t := &backgroundTask{step: step, done: make(chan struct{}), cancel: cancel, finish: finish}
	go func() {
		defer close(t.done)
		t.err = do(ctx)
	}()
	return t
}

// drop breaks a task off, whatever it has come to, and waits for its end.
func (t *backgroundTask) drop() {
	if t.runs() {
		t.cancel()
		<-t.done
	}
}
