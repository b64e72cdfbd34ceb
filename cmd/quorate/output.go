package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// addOutput adds the flag that all commands with an answer share. A value that is not known is refused before anything
// is done.
func addOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "", "json or yaml; text for people where it is not given")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch *output {
		case "", "json", "yaml":
			return nil
		}
		return &usageError{fmt.Errorf("--output %q: json and yaml are allowed", *output)}
	}
}

// wantedOutput is the form in which a command was asked to print, also where it failed; empty: text.
func wantedOutput(cmd *cobra.Command) string {
	// kubeconfig's flag --output is a file, and has no short form.
	if f := cmd.Flags().Lookup("output"); f != nil && f.Shorthand == "o" {
		switch v := f.Value.String(); v {
		case "json", "yaml":
			return v
		}
	}
	return ""
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
