package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	core "k8s.io/client-go/kubernetes/typed/core/v1"
	rbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"
)

// The words of a token's Secret: https://pkg.go.dev/k8s.io/cluster-bootstrap/token/api.
const (
	secretType   = "bootstrap.kubernetes.io/token"
	secretPrefix = "bootstrap-token-"
	keyID        = "token-id"
	keySecret    = "token-secret"
	keyExpires   = "expiration"
	keySignsIn   = "usage-bootstrap-authentication"
	keyGroups    = "auth-extra-groups"
	keyText      = "description"
)

// Client makes, lists and deletes the tokens of a cluster.
type Client struct {
	secrets core.SecretInterface
	rbac    rbac.RbacV1Interface
}

// NewClient asks nothing yet. The config is that of somebody who may make Secrets of kube-system and grant roles: an
// administrator.
func NewClient(config *rest.Config) (*Client, error) {
	c, err := core.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	r, err := rbac.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the cluster: %w", err)
	}
	return &Client{secrets: c.Secrets(metav1.NamespaceSystem), rbac: r}, nil
}

// Create grants what kubelets may do with tokens, and makes one.
func (c *Client) Create(ctx context.Context, t Token) error {
	if err := c.grant(ctx); err != nil {
		return err
	}
	secret := &corev1.Secret{Type: secretType,
		ObjectMeta: metav1.ObjectMeta{Name: secretPrefix + t.ID, Namespace: metav1.NamespaceSystem},
		StringData: map[string]string{keyID: t.ID, keySecret: t.Secret, keyExpires: t.Expires.Format(time.RFC3339),
			keySignsIn: "true", keyGroups: group, keyText: t.Description}}
	if _, err := c.secrets.Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make token %s: %w", t.ID, err)
	}
	return nil
}

// List are the tokens of workers, the one that expires first in front, without their secrets. Those that kubeadm made
// are among them.
func (c *Client) List(ctx context.Context) ([]Token, error) {
	found, err := c.secrets.List(ctx, metav1.ListOptions{FieldSelector: "type=" + secretType})
	if err != nil {
		return nil, fmt.Errorf("list the tokens: %w", err)
	}
	var out []Token
	for _, s := range found.Items {
		if !slices.Contains(strings.Split(string(s.Data[keyGroups]), ","), group) {
			continue
		}
		t := Token{ID: string(s.Data[keyID]), Description: string(s.Data[keyText])}
		if text := string(s.Data[keyExpires]); text != "" {
			if t.Expires, err = time.Parse(time.RFC3339, text); err != nil {
				return nil, fmt.Errorf("list the tokens: Secret kube-system/%s: %s: found %q, a time such as "+
					"2026-01-02T15:04:05Z is allowed", s.Name, keyExpires, text)
			}
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b Token) int {
		if d := a.Expires.Compare(b.Expires); d != 0 {
			return d
		}
		return strings.Compare(a.ID, b.ID)
	})
	return out, nil
}

// ErrNoToken is returned by Delete for a token that is not there.
var ErrNoToken = errors.New("there is no such token")

// Delete takes a token back. Workers that have joined with it stay.
func (c *Client) Delete(ctx context.Context, id string) error {
	if err := CheckID(id); err != nil {
		return err
	}
	err := c.secrets.Delete(ctx, secretPrefix+id, metav1.DeleteOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("delete token %s: %w", id, ErrNoToken)
	case err != nil:
		return fmt.Errorf("delete token %s: %w", id, err)
	}
	return nil
}
