package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Whatever command prints it.
func TestTheStreamsOfEveryCommandAreVisible(t *testing.T) {
	var stdout, stderr bytes.Buffer
	root := &cobra.Command{Use: "quorate", SilenceErrors: true, SilenceUsage: true}
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.Print("on stderr \x1b[31m")
		cmd.OutOrStdout().Write([]byte("on stdout \x1b[31m"))
		return errors.New("an error \x1b[31m")
	}
	if code := execute(root, nil, &stdout, &stderr); code != exitFailure {
		t.Errorf("code %d", code)
	}
	if got := stdout.String() + stderr.String(); strings.Contains(got, "\x1b") ||
		strings.Count(got, `\u001b[31m`) != 3 {
		t.Errorf("got %q", got)
	}
}
