package record

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gocloud.dev/gcp"
	"gocloud.dev/secrets"
	"gocloud.dev/secrets/gcpkms"
	"gocloud.dev/secrets/localsecrets"
)

// sealTimeout bounds one use of the key with all retries of the KMS client.
const sealTimeout = 15 * time.Second

// sealKey opens the keeper of a key at its first use and keeps it. A failure is not kept, as gocloud's own opener of gcpkms
// URLs would keep it for the life of the process.
type sealKey struct {
	scheme string
	open   func(context.Context) (*secrets.Keeper, error)

	mu     sync.Mutex
	opened *secrets.Keeper
}

// parseSealKey does not use net/url, whose errors quote the URL, and never quotes it itself: a base64key URL is the key.
func parseSealKey(keyURL string) (*sealKey, error) {
	const want = "want gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/K or base64key://KEY"
	scheme, rest, ok := strings.Cut(keyURL, "://")
	if !ok {
		return nil, errors.New("it has no scheme: " + want)
	}
	switch scheme {
	case gcpkms.Scheme:
		parts := strings.Split(rest, "/")
		if len(parts) != 8 || parts[0] != "projects" || parts[2] != "locations" || parts[4] != "keyRings" || parts[6] != "cryptoKeys" {
			return nil, fmt.Errorf("%q names no Cloud KMS key: %s", keyURL, want)
		}
		return &sealKey{scheme: scheme, open: func(ctx context.Context) (*secrets.Keeper, error) { return openKMS(ctx, rest) }}, nil
	case localsecrets.Scheme:
		key, err := parseBase64Key(rest)
		if err != nil {
			return nil, err
		}
		return &sealKey{scheme: scheme, open: func(context.Context) (*secrets.Keeper, error) { return localsecrets.NewKeeper(key), nil }}, nil
	}
	return nil, errors.New("its scheme is not known: " + want)
}

// parseBase64Key takes both alphabets. gocloud would take an empty key for "make a random one", which nobody could open again.
func parseBase64Key(text string) ([32]byte, error) {
	key, err := localsecrets.Base64Key(text)
	if err != nil {
		key, err = localsecrets.Base64KeyStd(text)
	}
	if err != nil || text == "" {
		return key, errors.New("base64key: want 32 bytes in base64 (head -c 32 /dev/urandom | base64)")
	}
	return key, nil
}

// openKMS connects to Cloud KMS with the machine's default credentials.
func openKMS(ctx context.Context, resource string) (*secrets.Keeper, error) {
	ctx = context.WithoutCancel(ctx) // the credentials keep it for later token requests
	credentials, err := gcp.DefaultCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("find credentials for Cloud KMS: %w", err)
	}
	client, _, err := gcpkms.Dial(ctx, gcp.CredentialsTokenSource(credentials))
	if err != nil {
		return nil, fmt.Errorf("connect to Cloud KMS: %w", err)
	}
	return gcpkms.OpenKeeper(client, resource, nil), nil
}

// use runs one use of the key within its time. Its error is ErrSealKey where the key itself has answered no.
func (k *sealKey) use(ctx context.Context, do func(context.Context, *secrets.Keeper) ([]byte, error)) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	keeper, err := k.keeper(ctx)
	if err != nil {
		return nil, err
	}
	out, err := do(ctx, keeper)
	return out, keyAnswer(k.scheme, err)
}

func (k *sealKey) keeper(ctx context.Context) (*secrets.Keeper, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opened == nil {
		keeper, err := k.open(ctx)
		if err != nil {
			return nil, err
		}
		k.opened = keeper
	}
	return k.opened, nil
}
