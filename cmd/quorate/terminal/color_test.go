package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

const (
	green, yellow, red, reset = "\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[0m"
)

// showAll prints in each way that has colors: a text, a table, and a line by itself.
func showAll(w io.Writer) {
	PaintText(w, Good, "all is well")
	PaintText(w, Warn, "")
	PrintTableBelow(w, []string{"NAME", "STATE", "NOTE"}, []Row{
		{Cells: []string{"a", "ready", ""}, Tones: map[int]Tone{1: Warn}},
		{Cells: []string{"b", "not heard", "x"}, Tones: map[int]Tone{1: Bad, 2: NoTone}}})
	Paint(w, NoTone, "plain\n")
	fmt.Fprintln(w, "end")
}

// painted is what showAll prints in colors; without them it is the same text.
var painted = green + "all is well" + reset + "\n\nNAME  STATE      NOTE\na     " + yellow + "ready" + reset +
	"\nb     " + red + "not heard" + reset + "  x\nplain\nend\n"

var plain = strings.NewReplacer(green, "", yellow, "", red, "", reset, "").Replace(painted)

// printed is what show writes to a terminal, by way of PrintAs or right to the command's output.
func printed(t *testing.T, gathered bool, show func(io.Writer)) string {
	t.Helper()
	k := newTerminal(t)
	out := &VisibleWriter{To: k.terminal}
	if gathered {
		if err := PrintAs(out, "", nil, show); err != nil {
			t.Fatal(err)
		}
	} else {
		show(out)
	}
	return readUntil(t, k, "end\r\n")
}

// readUntil is what a terminal shows until some text, with plain ends of lines.
func readUntil(t *testing.T, k keyboard, end string) string {
	t.Helper()
	var got strings.Builder
	for b := make([]byte, 4096); !strings.HasSuffix(got.String(), end); {
		n, err := k.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		got.Write(b[:n])
	}
	return strings.ReplaceAll(got.String(), "\r\n", "\n")
}

func TestATerminalShowsColorsUnlessItHasNoneOrTheyAreDeclined(t *testing.T) {
	for _, c := range []struct{ term, noColor, want string }{
		{"xterm-256color", "", painted}, {"xterm", "1", plain}, {"xterm", "0", plain}, {"dumb", "", plain},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("NO_COLOR", c.noColor)
		for _, gathered := range []bool{false, true} {
			if got := printed(t, gathered, showAll); got != c.want {
				t.Errorf("TERM=%s NO_COLOR=%q, gathered %t: %q, want %q", c.term, c.noColor, gathered, got, c.want)
			}
		}
	}
}

func TestAFileAndAPipeHaveNoColors(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var text strings.Builder
	for _, to := range []io.Writer{file, &text} {
		if err := PrintAs(&VisibleWriter{To: to}, "", nil, showAll); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != plain || text.String() != plain {
		t.Errorf("a file has %q, another writer %q", kept, text.String())
	}
}

// Names and reasons come out of the record: whoever may write there must not make a fault look like a success.
func TestATextCannotSetAColor(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	got := printed(t, true, func(w io.Writer) {
		Paint(w, Bad, "lost"+green+"\n")
		fmt.Fprintln(w, green+"name")
		PrintTableBelow(w, []string{"NAME"}, []Row{{Cells: []string{reset + "m"}, Tones: map[int]Tone{0: Bad}}})
		fmt.Fprintln(w, "end")
	})
	want := red + `lost\u001b[32m` + "\n" + reset + `\u001b[32mname` + "\n\nNAME\n" + red + `\u001b[0mm` + reset +
		"\nend\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
