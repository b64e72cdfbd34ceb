package house

import (
	"bytes"
	"go/scanner"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const columns, tabWidth = 120, 4

// TestLinesEndBeforeColumn120: longer lines are only those whose length is a string's, in code, and tables, drawings
// and commands in documents.
func TestLinesEndBeforeColumn120(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z", "-co", "--exclude-standard", "*.go", "*.md")
	cmd.Dir = "../.."
	names, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".go") {
			text = withoutStrings(text)
		} else {
			text = prose(text)
		}
		for n, line := range bytes.Split(text, []byte("\n")) {
			if width := utf8.RuneCount(line) + (tabWidth-1)*bytes.Count(line, []byte("\t")); width > columns {
				t.Errorf("%s:%d is %d columns wide", name, n+1, width)
			}
		}
	}
}

// withoutStrings empties the strings of Go's code, but not the lines in them.
func withoutStrings(code []byte) []byte {
	code = slices.Clone(code)
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(code))
	var s scanner.Scanner
	s.Init(file, slices.Clone(code), nil, scanner.ScanComments)
	for at, found, literal := s.Scan(); found != token.EOF; at, found, literal = s.Scan() {
		if found != token.STRING {
			continue
		}
		for i := range len(literal) {
			if p := &code[file.Offset(at)+i]; *p != '\n' {
				*p = 0
			}
		}
	}
	return bytes.ReplaceAll(code, []byte{0}, nil)
}

// prose empties a document's tables, drawings, commands and addresses.
func prose(document []byte) []byte {
	lines, fenced := strings.Split(string(document), "\n"), false
	for n, line := range lines {
		words := strings.TrimSpace(line)
		if strings.HasPrefix(words, "```") {
			fenced = !fenced
		}
		indented := strings.HasPrefix(line, "    ") && (n == 0 || lines[n-1] == "")
		if fenced || indented || strings.HasPrefix(words, "|") || len(strings.Fields(words)) == 1 {
			lines[n] = ""
		}
	}
	return []byte(strings.Join(lines, "\n"))
}
