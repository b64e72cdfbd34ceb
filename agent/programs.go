package agent

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/quorate/quorate/controlplane"
	"github.com/quorate/quorate/supervisor"
)

// programs says which components' programs can be used. One that was found usable is asked again only when its file has
// changed, and one whose answer is still outstanding is not asked a second time. Several may use it at once.
type programs struct {
	mu    sync.Mutex
	asked map[string]*question // by path: the newest of each program
}

// question is one to a program, whether it can be used. err is to be read once done is closed.
type question struct {
	file fileID
	done chan struct{}
	err  error
}

func (q *question) answered() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// fileID distinguishes a file from the one that stood at its path before, and from itself before a change. The zero
// value is of no file.
type fileID struct {
	dev, ino          uint64
	size              int64
	changed, modified syscall.Timespec
}

func identifyFile(path string) fileID {
	info, err := os.Stat(path)
	if err != nil {
		return fileID{}
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{st.Dev, st.Ino, st.Size, st.Ctim, st.Mtim}
}

// check says of each component why its program cannot be used; nil: it can be. All are asked at the same time, which
// also reads them into the page cache. An error that is no controlplane.ErrBinary may pass: the program has not
// answered in time.
func (p *programs) check(ctx context.Context, specs []supervisor.Spec) []error {
	limit := time.NewTimer(programPatience)
	defer limit.Stop()
	questions := make([]*question, len(specs))
	for i, spec := range specs {
		questions[i] = p.ask(ctx, spec)
	}
	faults := make([]error, len(specs))
	late := false
	for i, q := range questions {
		if !late {
			select {
			case <-q.done:
			case <-limit.C:
				late = true
			}
		}
		if faults[i] = fmt.Errorf("check %s: %s does not answer", specs[i].Name, specs[i].Path); q.answered() {
			faults[i] = q.err
		}
	}
	return faults
}

// file is the file that was found usable at a path.
func (p *programs) file(path string) fileID {
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.asked[path]; q != nil && q.answered() && q.err == nil {
		return q.file
	}
	return fileID{}
}

// ask asks a program, unless it was found usable, or has not answered yet. The question ends with ctx; nobody waits for
// one that hangs in the kernel.
func (p *programs) ask(ctx context.Context, spec supervisor.Spec) *question {
	file := identifyFile(spec.Path) // before the question: what takes its place meanwhile is asked the next time
	p.mu.Lock()
	defer p.mu.Unlock()
	if q := p.asked[spec.Path]; q != nil && (!q.answered() || q.err == nil && q.file == file) {
		return q
	}
	q := &question{file: file, done: make(chan struct{})}
	if p.asked == nil {
		p.asked = map[string]*question{}
	}
	p.asked[spec.Path] = q
	go func() {
		defer close(q.done)
		q.err = controlplane.CheckBinary(ctx, spec, controlplane.KubernetesMinor)
	}()
	return q
}
