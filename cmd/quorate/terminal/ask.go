package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// endLook is how often a question checks whether the command is to end: soon enough for the person who typed ^C.
const endLook = 100 * time.Millisecond

// readLine reads what a person types in one line. It ends with ctx, and a line that comes after that is none: main
// takes the signals of ^C and of a kill, so a plain read would hear of neither, and a yes that is typed after ^C would
// count.
func readLine(ctx context.Context, terminal *os.File) (string, error) {
	var line []byte
	part := make([]byte, 4096) // a terminal gives a line at once, and no longer one
	for ctx.Err() == nil {
		there, err := unix.Poll([]unix.PollFd{{Fd: int32(terminal.Fd()), Events: unix.POLLIN}},
			int(endLook.Milliseconds()))
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return "", err
		case there <= 0:
			continue
		}
		n, err := terminal.Read(part)
		line = append(line, part[:n]...)
		if text, _, whole := bytes.Cut(line, []byte("\n")); whole && ctx.Err() == nil {
			return string(text), nil
		}
		if err != nil || n == 0 {
			return "", errors.Join(err, io.ErrUnexpectedEOF)
		}
	}
	return "", context.Cause(ctx)
}

// hideInput keeps a terminal from showing what is typed, until show is called.
func hideInput(terminal *os.File) (show func(), err error) {
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, err
	}
	// A line is read, ^C is a signal and Enter ends the line, also on a terminal that somebody has left raw.
	mode.Lflag = mode.Lflag&^unix.ECHO | unix.ICANON | unix.ISIG
	mode.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, mode); err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(fd, before) }, nil // the terminal itself shows it best
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
