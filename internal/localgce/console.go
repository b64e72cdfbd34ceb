package localgce

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// console is a VM's serial console: a terminal, because systemd and journald write to nothing else. What is printed
// there is copied to the VM's log.
type console struct {
	device string        // the VM's end
	end    *os.File      // the same: the copy would end before the VM has opened it
	copied chan struct{} // closed when all is copied
}

// openConsole makes a terminal and copies what is printed on it to log, which it closes in the end.
func openConsole(log *os.File) (*console, error) {
	fail := func(err error) (*console, error) {
		log.Close()
		return nil, fmt.Errorf("make the console: %w", err)
	}
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return fail(err)
	}
	master := os.NewFile(uintptr(fd), "console")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = rawOutput(fd)
	}
	c := &console{device: fmt.Sprintf("/dev/pts/%d", n), copied: make(chan struct{})}
	if err == nil {
		c.end, err = os.OpenFile(c.device, os.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		master.Close()
		return fail(err)
	}
	go func() {
		defer close(c.copied)
		defer log.Close()
		defer master.Close()
		_, _ = io.Copy(log, master) // ends when nobody has the other end any more
	}()
	return c, nil
}

// rawOutput makes lines end as they were written.
func rawOutput(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}

// close returns when all is copied that a VM has printed, which is dead by now.
func (c *console) close() {
	c.end.Close()
	<-c.copied
}
