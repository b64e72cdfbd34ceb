package terminal

import (
	"bytes"
	"strings"
	"testing"
)

// attacks are texts that an object of the record can hold, and what a person is to see of them.
var attacks = map[string]string{
	"plain, ünïcödé ✓":     "plain, ünïcödé ✓",
	"\x1b[2J\x1b[1;1Hgone": `\u001b[2J\u001b[1;1Hgone`,
	"\x1b]0;title\a":       `\u001b]0;title\u0007`,
	"over\rwritten":        `over\u000dwritten`,
	"erased\b\b":           `erased\u0008\u0008`,
	"\u009b31m":            `\u009b31m`, // the one-character form of ESC [
	"a\u202ekcats":         `a\u202ekcats`,
	"zero\u200bwidth":      `zero\u200bwidth`,
	"\xff\xfe":             `\xff\xfe`,
	"tag\U000e0041":        `tag\U000e0041`,
	"nul\x00 del\x7f":      `nul\u0000 del\u007f`,
}

func TestWhatATerminalWouldObeyIsSpelledOut(t *testing.T) {
	for text, want := range attacks {
		if got := Visible(text); got != want {
			t.Errorf("visible(%q) = %q, want %q", text, got, want)
		}
		var table, paragraph bytes.Buffer
		PrintTable(&table, []string{"NAME", "NEXT"}, []Row{{Cells: []string{text, "x"}, Below: text}})
		PrintText(&paragraph, "", text)
		if !strings.Contains(table.String(), want) {
			t.Errorf("a table with %q: %q", text, table.String())
		}
		for what, out := range map[string]string{"a table": table.String(), "a text": paragraph.String()} {
			if strings.ContainsFunc(strings.ReplaceAll(out, "\n", ""), hidden) {
				t.Errorf("%s with %q: %q", what, text, out)
			}
		}
	}
}

func TestACellIsOneLine(t *testing.T) {
	var b bytes.Buffer
	PrintTable(&b, []string{"NAME", "NEXT"}, []Row{{Cells: []string{"m-1\nm-2  fine\ta", "x"}}})
	if want := "NAME                       NEXT\nm-1\\u000am-2  fine\\u0009a  x\n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// However the text is cut into writes.
func TestAStreamIsVisible(t *testing.T) {
	for text, want := range attacks {
		for _, step := range []int{1, 2, 3, 1000} {
			var b bytes.Buffer
			v := &VisibleWriter{To: &b}
			for rest := "line\n\t" + text; rest != ""; {
				n, err := v.Write([]byte(rest[:min(step, len(rest))]))
				if err != nil || n != min(step, len(rest)) {
					t.Fatal(n, err)
				}
				rest = rest[n:]
			}
			if err := v.Close(); err != nil || b.String() != "line\n\t"+want {
				t.Errorf("%q in steps of %d: %q, want %q: %v", text, step, b.String(), want, err)
			}
		}
	}
}
