package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func TestMemoryThatOnlyTheStartNeededIsGivenBack(t *testing.T) {
	before := residentFileKiB(t)
	if err := giveBackMemory(); err != nil {
		t.Fatal(err)
	}
	after := residentFileKiB(t)
	t.Logf("pages of files in memory: %d KiB before, %d KiB after", before, after)
	if after > before/2 {
		t.Errorf("%d KiB of files are resident, of %d KiB before", after, before)
	}
	// What was given back comes again by itself: the program still works.
	if code := run([]string{"--version"}, io.Discard, io.Discard); code != exitOK {
		t.Errorf("--version ends with %d", code)
	}
}

func TestOnlyTheProgramsReadOnlyPagesAreGivenBack(t *testing.T) {
	for line, want := range map[string]bool{
		"00400000-0289c000 r-xp 00000000 fe:00 9979017                            /usr/local/bin/quorate":   true,
		"0289c000-0530e000 r--p 0249c000 fe:00 9979017                            /usr/local/bin/quorate\n": true,
		"0530e000-05459000 rw-p 04f0e000 fe:00 9979017                            /usr/local/bin/quorate":   false,
		"7ff817e00000-7ffa57e00000 r--s 00000000 07:06 15                         /var/lib/quorate/db":      false,
		"c000000000-c001400000 rw-p 00000000 00:00 0":                                                       false,
		"7ffc1000-7ffc2000 r-xp 00000000 00:00 0    [vdso]":                                                 false,
	} {
		begin, size, ok := programPages(line, "/usr/local/bin/quorate")
		if ok != want || ok && (begin == 0 || size == 0) {
			t.Errorf("%q: %x %x %v", line, begin, size, ok)
		}
	}
}

func residentFileKiB(t *testing.T) (kib int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "RssFile:"); ok {
			if _, err := fmt.Sscan(rest, &kib); err != nil {
				t.Fatal(err)
			}
		}
	}
	return kib
}
