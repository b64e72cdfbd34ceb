package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// keyboard is the other end of a terminal: what is written to it is typed.
type keyboard struct {
	*os.File
	terminal *os.File
}

// newTerminal opens a pseudoterminal that is nobody's own, so that a ^C on it is only a character and no signal for the
// test.
func newTerminal(t *testing.T) keyboard {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keys.Close() })
	if err := unix.IoctlSetPointerInt(int(keys.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(keys.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return keyboard{keys, terminal}
}

func (k keyboard) press(t *testing.T, text string) {
	t.Helper()
	if _, err := k.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// echoes: the terminal shows what is typed.
func (k keyboard) echoes(t *testing.T) bool {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(k.terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return mode.Lflag&unix.ECHO != 0
}

// shown is what a command has printed.
type shown struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (s *shown) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// await waits until a text was printed.
func (s *shown) await(t *testing.T, text string) {
	t.Helper()
	for range 1000 {
		s.mu.Lock()
		there := strings.Contains(s.text.String(), text)
		s.mu.Unlock()
		if there {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q was not printed", text)
}

// asking runs a question at a terminal until it ends by itself.
func asking(t *testing.T, ctx context.Context, k keyboard, question func(*cobra.Command) error) (*shown, <-chan error) {
	t.Helper()
	out, ended := &shown{}, make(chan error, 1)
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	cmd.SetIn(k.terminal)
	cmd.SetErr(out)
	go func() { ended <- question(cmd) }()
	return out, ended
}

// endOf is how a question ended; one that goes on waiting is a fault.
func endOf(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("the question still waits")
		return nil
	}
}

func sure(cmd *cobra.Command) error { return Confirm(cmd, "", "Sure?", false) }

func TestOnlyTheWordIsAYes(t *testing.T) {
	for typed, want := range map[string]error{
		"yes\n": nil, "  yes \n": nil, "y\x04es\n": nil, "y\n": errNotConfirmed, "\n": errNotConfirmed,
		"no\nyes\n": errNotConfirmed, "\x04": errNotConfirmed,
	} {
		k := newTerminal(t)
		out, ended := asking(t, t.Context(), k, sure)
		out.await(t, "Sure? Type yes: ")
		k.press(t, typed)
		if err := endOf(t, ended); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", typed, err, want)
		}
	}
}

// A signal ends ctx. Nobody reads the rest of the terminal then.
func TestACommandThatEndsAtItsQuestionIsNotConfirmed(t *testing.T) {
	for name, typed := range map[string]string{"nothing was typed": "", "half a word": "ye\x04"} {
		k := newTerminal(t)
		ctx, cancel := context.WithCancel(t.Context())
		out, ended := asking(t, ctx, k, sure)
		out.await(t, "Type yes: ")
		k.press(t, typed)
		cancel()
		if err := endOf(t, ended); !errors.Is(err, errNotConfirmed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAYesAfterTheEndIsNone(t *testing.T) {
	k := newTerminal(t)
	k.press(t, "yes\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ended := asking(t, ctx, k, sure)
	if err := endOf(t, ended); !errors.Is(err, errNotConfirmed) {
		t.Errorf("%v", err)
	}
}

func TestAPassphraseIsNotShown(t *testing.T) {
	k := newTerminal(t)
	var got string
	out, ended := asking(t, t.Context(), k, func(cmd *cobra.Command) (err error) {
		got, err = Passphrase(cmd, "", true)
		return err
	})
	for _, prompt := range []string{"Passphrase: ", "The same again: "} {
		out.await(t, prompt)
		if k.echoes(t) {
			t.Errorf("at %q the terminal shows what is typed", prompt)
		}
		k.press(t, "correct horse\n")
	}
	if err := endOf(t, ended); err != nil || got != "correct horse" || !k.echoes(t) {
		t.Errorf("passphrase %q, %v; the terminal shows what is typed: %t", got, err, k.echoes(t))
	}
}

func TestACommandThatEndsAtThePassphraseLeavesTheTerminalAsItWas(t *testing.T) {
	k := newTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, ended := asking(t, ctx, k, func(cmd *cobra.Command) error {
		_, err := Passphrase(cmd, "",
			false)
		return err
	})
	out.await(t, "Passphrase: ")
	cancel()
	if err := endOf(t, ended); !errors.Is(err, errNoPassphrase) || !k.echoes(t) {
		t.Errorf("%v; the terminal shows what is typed: %t", err, k.echoes(t))
	}
}
