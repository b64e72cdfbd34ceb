package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quorate/quorate/agent"
)

var update = flag.Bool("update", false, "write the golden files")

// TestStatusText compares what a person reads with the golden files: a replica that is well, one that cannot boot, one
// that waits.
func TestStatusText(t *testing.T) {
	inputs, err := filepath.Glob("testdata/status/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no input: %v", err)
	}
	now := time.Date(2026, 11, 20, 23, 52, 10, 0, time.UTC)
	for _, input := range inputs {
		t.Run(filepath.Base(input), func(t *testing.T) {
			b, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var s shownStatus
			if err := json.Unmarshal(b, &s); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			showStatus(&out, s, now)
			compareGolden(t, strings.TrimSuffix(input, ".json")+".golden", out.String())
			for line := range strings.Lines(out.String()) {
				if utf8.RuneCountInString(line) > lineWidth+1 || strings.HasSuffix(line, " \n") {
					t.Errorf("a line that is too long, or ends with a space: %q", line)
				}
			}
		})
	}
}

func compareGolden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func TestTheStatusSaysWhatTheArchiveTakes(t *testing.T) {
	if got := archiveText(&agent.ArchiveStatus{Count: 2, Bytes: 300 << 20,
		Kept: "no archive is purged: a restore is in force"}); got != "2 archived directories take 300 MiB; no "+
		"archive is purged: a restore is in force" {
		t.Error(got)
	}
}
