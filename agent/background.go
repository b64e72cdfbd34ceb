package agent

import (
	"context"
	"sync"
)

// background runs duties side by side until the returned function is called, which waits for their end.
func background(ctx context.Context, duties ...func(ctx context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	for _, duty := range duties {
		running.Go(func() { duty(ctx) })
	}
	return func() { cancel(); running.Wait() }
}
