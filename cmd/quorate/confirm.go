package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// confirm says what a step risks and asks for the word yes. Where nobody can be asked, the flag --yes must be given. A
// ^C, or another end of the command, is a no.
func confirm(cmd *cobra.Command, risk, question string, yes bool) error {
	return confirmWord(cmd, risk, question, "yes", yes)
}

// confirmWord is confirm where another word is asked for.
func confirmWord(cmd *cobra.Command, risk, question, word string, yes bool) error {
	out := cmd.ErrOrStderr()
	if risk != "" {
		printText(out, "", risk)
	}
	if yes {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return &usageError{fmt.Errorf("%s There is no terminal to ask on; add --yes if you are sure; nothing was "+
			"changed", question)}
	}
	fmt.Fprintf(out, "%s Type %s: ", question, word)
	answer, err := readLine(cmd.Context(), in)
	if err != nil {
		fmt.Fprintln(out) // the question's line has no end
	}
	if err != nil || strings.TrimSpace(answer) != word {
		return errNotConfirmed
	}
	return nil
}

// addYes adds the flag that answers the question beforehand.
func addYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask: you know what it risks")
}

// errNotConfirmed says that a person was asked and did not say yes.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")
