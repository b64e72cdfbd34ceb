package network

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Folder is where iproute2 keeps named network namespaces.
const Folder = "/run/netns"

// In calls f on a thread that is in the named network namespace: sockets that f makes and processes that it
// starts belong there. f must not hand work to other goroutines that make sockets.
func In(name string, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			done <- err
			return // still locked: the thread ends with the goroutine
		}
		defer home.Close()
		if err = enterNamespace(name); err == nil {
			err = f()
		}
		if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
			done <- fmt.Errorf("leave network namespace %s: %w", name, back)
			return
		}
		runtime.UnlockOSThread()
		done <- err
	}()
	return <-done
}

func enterNamespace(name string) error {
	target, err := os.Open(filepath.Join(Folder, name))
	if err != nil {
		return fmt.Errorf("open network namespace: %w", err)
	}
	defer target.Close()
	if err := unix.Setns(int(target.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", name, err)
	}
	return nil
}

// sysctls writes net sysctls of the named network namespace, given as path below /proc/sys/net and value in turn.
func sysctls(namespace string, pairs ...string) error {
	return In(namespace, func() error {
		for i := 0; i < len(pairs); i += 2 {
			if err := os.WriteFile(filepath.Join("/proc/sys/net", pairs[i]), []byte(pairs[i+1]), 0o644); err != nil {
				return fmt.Errorf("set sysctl in network namespace %s: %w", namespace, err)
			}
		}
		return nil
	})
}
