//go:build atstep

package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/quorate/quorate/etcdmember/acts"
)

// atStep makes, in a program that is built for tests alone (`go build -tags atstep`), the agent end like one that is
// killed, before or after the step that the file end-at in its folder names: "<step> before" or "<step> after". The
// file is taken away first, so that the agent which comes after it lives.
func atStep(run string) func(acts.Step, acts.Moment) {
	path := filepath.Join(run, "end-at")
	return func(s acts.Step, m acts.Moment) {
		b, err := os.ReadFile(path)
		if err != nil || strings.TrimSpace(string(b)) != string(s)+" "+string(m) {
			return
		}
		if os.Remove(path) != nil {
			return
		}
		self, _ := os.FindProcess(os.Getpid())
		self.Kill()
		select {}
	}
}
