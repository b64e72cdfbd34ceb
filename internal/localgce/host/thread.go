package host

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// OnOwnThread calls f on a thread that ends with it, so that f may move the thread to other namespaces for good. f must
// not hand work to other goroutines. The process's first thread would not end: /proc/self would be in f's namespaces
// from then on, and keep them.
func OnOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			done <- OnOwnThread(f) // on another, because this one is taken
			runtime.UnlockOSThread()
			return
		}
		done <- f() // never unlocked: the thread ends with the goroutine
	}()
	return <-done
}
