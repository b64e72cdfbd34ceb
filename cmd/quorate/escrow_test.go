package main

import (
	"bytes"
	"os"

	filippo "filippo.io/age"
	"filippo.io/age/armor"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/quorate/quorate/certs"
)

// passphrase is that of the scripts' escrows.
const passphrase = "correct horse battery staple"

// open ESCROW FILE: write what is in an escrow to a new file, as `age --decrypt` does.
func openEscrow(ts *testscript.TestScript, _ bool, args []string) {
	sealed, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	b, err := certs.OpenEscrow(sealed, passphrase)
	ts.Check(err)
	text, err := b.Encode()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), text, 0o600))
}

// close FILE...: make an escrow of each, FILE.age, as `age --passphrase --armor` does, but one that is quick to guess.
func closeEscrows(ts *testscript.TestScript, _ bool, args []string) {
	recipient, err := filippo.NewScryptRecipient(passphrase)
	ts.Check(err)
	recipient.SetWorkFactor(1)
	for _, name := range args {
		plain, err := os.ReadFile(ts.MkAbs(name))
		ts.Check(err)
		var out bytes.Buffer
		armored := armor.NewWriter(&out)
		w, err := filippo.Encrypt(armored, recipient)
		ts.Check(err)
		_, err = w.Write(plain)
		ts.Check(err)
		ts.Check(w.Close())
		ts.Check(armored.Close())
		ts.Check(os.WriteFile(ts.MkAbs(name)+".age", out.Bytes(), 0o600))
	}
}
