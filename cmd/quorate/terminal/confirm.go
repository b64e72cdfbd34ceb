package terminal

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quorate/quorate/cmd/quorate/fault"
)

// Confirm says what a step risks and asks for the word yes. Where nobody can be asked, the flag --yes must be given. A
// ^C, or another end of the command, is a no.
func Confirm(cmd *cobra.Command, risk, question string, yes bool) error {
	return ConfirmWord(cmd, risk, question, "yes", yes)
}

// ConfirmWord is confirm where another word is asked for.
func ConfirmWord(cmd *cobra.Command, risk, question, word string, yes bool) error {
	out := cmd.ErrOrStderr()
	if risk != "" {
		PrintText(out, "", risk)
	}
	if yes {
		return nil
	}
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return fault.Usage("%s There is no terminal to ask on; add --yes if you are sure; nothing was "+
			"changed", question)
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

// AddYes adds the flag that answers the question beforehand.
func AddYes(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask: you know what it risks")
}

// errNotConfirmed says that a person was asked and did not say yes.
var errNotConfirmed = errors.New("not confirmed; nothing was changed")
