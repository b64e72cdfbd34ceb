package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/internal/localgce"
)

func newLogs() *cobra.Command {
	var followOn bool
	cmd := &cobra.Command{
		Use: "logs NAME [COMPONENT]", Args: exactly(cobra.RangeArgs(1, 2)),
		Short: "Print what a VM's init and agent have printed, or COMPONENT.log of its /var/log/quorate",
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := openLog(state(cmd), args)
			if err != nil {
				return err
			}
			defer f.Close()
			return copyLog(cmd.Context(), cmd.OutOrStdout(), f, followOn)
		},
	}
	cmd.Flags().BoolVarP(&followOn, "follow", "f", false, "go on as the log grows, until interrupted")
	return cmd
}

// openLog opens the log of a VM, or of a VM's component. It needs no project: the logs are there when it is down.
func openLog(state string, args []string) (*os.File, error) {
	path, err := localgce.LogPath(state, args[0])
	if err != nil {
		return nil, err
	}
	own := path
	if len(args) == 2 {
		path = filepath.Join(strings.TrimSuffix(path, ".log"), args[1]+".log")
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		elsewhere := ""
		if _, err := os.Stat(own); err == nil { // there is the VM, then
			elsewhere = fmt.Sprintf("; a VM that boots an image has it in its journal: "+
				"localgce vm exec %s -- journalctl -t %s", args[0], args[1])
		}
		return nil, fmt.Errorf("there is no log of %s; there are: %s%s", strings.Join(args, "'s "),
			logsIn(filepath.Dir(path)), elsewhere)
	}
	if err != nil {
		return nil, fmt.Errorf("read the log of %s: %w", args[0], err)
	}
	return f, nil
}

// logsIn names the logs in a folder.
func logsIn(dir string) string {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.log")) // the pattern is well formed
	var names []string
	for _, p := range paths {
		if name := strings.TrimSuffix(filepath.Base(p), ".log"); name != "localgce" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none in " + dir
	}
	return strings.Join(names, ", ")
}

// copyLog copies what is there and, if asked to follow, what comes, until the context ends.
func copyLog(ctx context.Context, out io.Writer, log io.Reader, follow bool) error {
	const poll = 200 * time.Millisecond // a person reads along
	for {
		if _, err := io.Copy(out, log); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(poll):
		}
	}
}
