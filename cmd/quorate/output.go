package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// addOutput adds the flag that all commands with an answer share. A value that is not known is refused before anything
// is done.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml; text for people where it is not given")
	completeFlag(cmd, "output", fixed("json", "yaml"))
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch *output {
		case "", "json", "yaml":
			return nil
		}
		return &usageError{fmt.Errorf("--output %q: json and yaml are allowed", *output)}
	}
}

// wantedOutput is the form in which a command was asked to print, also where it failed; empty: text. Where the command
// line could not be taken apart, its words say it.
func wantedOutput(cmd *cobra.Command, args []string) string {
	f := cmd.Flags().Lookup("output")
	switch {
	case f != nil && f.Shorthand != "o":
		return "" // kubeconfig's is a file
	case f != nil && f.Changed:
		return structured(f.Value.String())
	}
	return structured(outputAmong(args))
}

// structured is an output that is not text.
func structured(output string) string {
	if output == "json" || output == "yaml" {
		return output
	}
	return ""
}

// outputAmong is the value of the last -o or --output among the words of a command line.
func outputAmong(args []string) (value string) {
	for i, arg := range args {
		switch after := ""; {
		case arg == "--":
			return value
		case arg == "-o" || arg == "--output":
			value = strings.Join(args[i+1:min(i+2, len(args))], "")
		default:
			for _, flag := range []string{"--output=", "-o=", "-o"} {
				if after, _ = strings.CutPrefix(arg, flag); after != arg {
					value = after
					break
				}
			}
		}
	}
	return value
}

// printAs prints a value in the wanted form.
func printAs(w io.Writer, output string, v any, text func(io.Writer)) error {
	switch output {
	case "json":
		b, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", b)
		return err
	case "yaml":
		b, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	buffered := bufio.NewWriter(w)
	text(buffered)
	return buffered.Flush()
}

// textOf is a text of printAs that is one format.
func textOf(format string, args ...any) func(io.Writer) {
	return func(w io.Writer) { fmt.Fprintf(w, format, args...) }
}
