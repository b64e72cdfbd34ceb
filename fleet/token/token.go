package token

import (
	"crypto/rand"
	"fmt"
	"math/big"
	"regexp"
	"time"
)

// The lifetimes that a token may have. A kubelet needs it once, so the usual one is short; one without an end would be
// a standing way into the cluster.
const (
	Lifetime = 24 * time.Hour
	Shortest = time.Minute
	Longest  = 30 * 24 * time.Hour
)

// Token is a bootstrap token.
type Token struct {
	// ID names it, and is no secret.
	ID string `json:"id"`
	// Secret is the rest of what a kubelet shows; empty where tokens are listed.
	Secret string `json:"-"`
	// Expires is when it stops to work; kube-controller-manager deletes it then. Zero, for one that is not ours: never.
	Expires time.Time `json:"expires,omitzero"`
	// Description is for people.
	Description string `json:"description,omitempty"`
}

// String is what a kubelet shows: ID.SECRET.
func (t Token) String() string { return t.ID + "." + t.Secret }

// New draws a token. Errors: a lifetime that is not allowed.
func New(lifetime time.Duration, description string, now time.Time) (Token, error) {
	if lifetime < Shortest || lifetime > Longest {
		return Token{}, fmt.Errorf("lifetime %s: %s to %s is allowed", lifetime, Shortest, Longest)
	}
	return Token{ID: draw(6), Secret: draw(16), Expires: now.Add(lifetime).UTC().Truncate(time.Second),
		Description: description}, nil
}

// alphabet is that of https://pkg.go.dev/k8s.io/cluster-bootstrap/token/api (BootstrapTokenPattern).
const alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"

// draw is a random word. The system's source of randomness never fails: crypto/rand ends the program before.
func draw(n int) string {
	word := make([]byte, n)
	for i := range word {
		at, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
		if err != nil {
			panic(err)
		}
		word[i] = alphabet[at.Int64()]
	}
	return string(word)
}

var idPattern = regexp.MustCompile(`^[a-z0-9]{6}$`)

// CheckID says why a word cannot be a token's ID.
func CheckID(id string) error {
	if idPattern.MatchString(id) {
		return nil
	}
	return fmt.Errorf("token %q: its ID is allowed, which are 6 characters of a-z and 0-9", id)
}
