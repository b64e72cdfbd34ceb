// Command pause is the one program of a pod's sandbox image. It holds the pod's namespaces open, reaps the processes
// that end there without a parent, and ends when it is told to. images/master/pause.sh makes the image of it, so that a
// master's pods need no registry.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for {
		reap()
		if s := <-signals; s != syscall.SIGCHLD {
			return
		}
	}
}

// reap takes the exit codes of all children that have ended: one SIGCHLD may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if pid <= 0 || err != nil {
			return
		}
	}
}
