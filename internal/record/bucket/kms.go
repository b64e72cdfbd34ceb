package bucket

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/api/googleapi"
)

// kmsAPI is Cloud KMS. Its client library would bring all of that API for two questions of one field each.
const kmsAPI = "https://cloudkms.googleapis.com/v1/"

// sealTimeout bounds one use of the key with all its tries.
const sealTimeout = 15 * time.Second

// kmsKey is a key of Cloud KMS.
type kmsKey struct {
	client *http.Client
	name   string // projects/P/locations/L/keyRings/R/cryptoKeys/K
}

// kmsMessage is what is sent and what is answered. Bytes are base64 in JSON, as Cloud KMS wants them.
type kmsMessage struct {
	Plaintext  []byte `json:"plaintext,omitempty"`
	Ciphertext []byte `json:"ciphertext,omitempty"`
}

func (k kmsKey) seal(ctx context.Context, plaintext []byte) ([]byte, error) {
	answer, err := k.ask(ctx, "encrypt", kmsMessage{Plaintext: plaintext})
	return answer.Ciphertext, err
}

func (k kmsKey) open(ctx context.Context, sealed []byte) ([]byte, error) {
	answer, err := k.ask(ctx, "decrypt", kmsMessage{Ciphertext: sealed})
	return answer.Plaintext, err
}

// ask asks until there is an answer.
func (k kmsKey) ask(ctx context.Context, verb string, question kmsMessage) (kmsMessage, error) {
	data, err := json.Marshal(question)
	if err != nil {
		return kmsMessage{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, sealTimeout, fmt.Errorf("no answer within %s", sealTimeout))
	defer cancel()
	answer, err := retry(ctx, normalPace, func(ctx context.Context) (kmsMessage, error) {
		return k.askOnce(ctx, verb, data)
	})
	if err != nil {
		return kmsMessage{}, keyAnswer(inOneLine{err})
	}
	return answer, nil
}

func (k kmsKey) askOnce(ctx context.Context, verb string, data []byte) (answer kmsMessage, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, kmsAPI+k.name+":"+verb, bytes.NewReader(data))
	if err != nil {
		return answer, err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := k.client.Do(req)
	if err != nil {
		return answer, err
	}
	defer res.Body.Close()
	if err := googleapi.CheckResponse(res); err != nil {
		return answer, err
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
		return answer, fmt.Errorf("read the answer: %w", err)
	}
	return answer, nil
}

// keyAnswer marks what a key has answered itself. A key server that is away, slow or busy, or does not know who asks,
// has said nothing about the bundle. Nor has one that refuses the caller: Google's permissions take effect minutes
// after they were granted, so the first boot of a cluster may come too early.
func keyAnswer(err error) error {
	switch code := status(err); {
	case code == http.StatusBadRequest || code == http.StatusNotFound:
		return marked{err, ErrSealKey}
	case errors.As(err, new(scopesTooNarrow)):
		return fmt.Errorf("access denied: %w", err)
	case code == http.StatusForbidden:
		return fmt.Errorf("access denied (HTTP 403): the service account may not use the key, or not yet: a permission "+
			"takes effect within 7 minutes of being granted, at times later: %w", err)
	}
	return err
}
