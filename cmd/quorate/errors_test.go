package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/etcdmember/member"
	"github.com/quorate/quorate/internal/gce"
	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/record/bucket"
	"github.com/quorate/quorate/internal/record/bucket/buckettest"
	"github.com/quorate/quorate/internal/replica"
)

// bootUntilItFails runs a real agent whose metadata server is the given one.
func bootUntilItFails(t *testing.T, metadata agent.Metadata) error {
	t.Helper()
	dir := t.TempDir()
	return agent.Run(t.Context(), agent.Config{
		Log: slog.New(slog.DiscardHandler), Metadata: metadata, Notify: silent{}, RunDir: filepath.Join(dir, "run"),
		LogDir: filepath.Join(dir, "log"),
		Baked:  filepath.Join(dir, "absent.yaml"), Self: os.Args[0],
		Open: func(context.Context, replica.Identity, *replica.Cluster) (agent.Cloud, error) {
			return agent.Cloud{}, errors.New("the boot came further than it should")
		},
	})
}

// silent is a service manager that is not there.
type silent struct{}

func (silent) Ready()        {}
func (silent) Status(string) {}
func (silent) Stopping()     {}

// attribute is a metadata server that knows the VM and has one attribute.
type attribute string

func (attribute) Identity(context.Context) (replica.Identity, error) {
	return replica.Identity{Place: replica.Place{Zone: "us-central1-a", Name: "m"}, InstanceID: "1"}, nil
}

// WatchInterfaces never says anything.
func (attribute) WatchInterfaces(ctx context.Context, _ func([]replica.Interface), _ func(error)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (attribute) Spot(context.Context) (bool, error) { return false, nil }

// WatchMaintenanceEvent never says anything.
func (attribute) WatchMaintenanceEvent(ctx context.Context, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (attribute) Time(context.Context) (time.Time, error) { return time.Now(), nil }

func (a attribute) Watch(ctx context.Context, _ string, _ func(string, bool)) error {
	<-ctx.Done()
	return ctx.Err()
}

func (a attribute) Attribute(context.Context, string) (string, bool, error) {
	return string(a), a != "", nil
}

func TestAgentEndsWithACodeOfItsOwn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // nobody answers there now
	away := gce.NewMetadata(gce.MetadataConfig{Host: l.Addr().String(), Wait: 50 * time.Millisecond})
	for name, c := range map[string]struct {
		metadata agent.Metadata
		code     int
		says     string
	}{
		"the metadata server is away": {away, exitMetadata,
			"identity: read the VM's identity: ask the metadata server at " + l.Addr().String()},
		"there is no document": {attribute(""), exitConfig,
			`identity: no configuration: the instance has no attribute "quorate-cluster" and there is no `},
		"the document is not one": {attribute("<html>"), exitConfig,
			"identity: instance attribute quorate-cluster: found "},
		"a field of it is unknown": {attribute("apiVersion: quorate.dev/v1alpha1\nkind: Cluster\nnmae: x\n"),
			exitConfig, "quorate-cluster: line 3: nmae: found an unknown field (did you mean name?)"},
		"it lacks a field": {attribute("apiVersion: quorate.dev/v1alpha1\nkind: Cluster\n"),
			exitConfig, "quorate-cluster: seal.key: found nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := bootUntilItFails(t, c.metadata)
			if err == nil || exitCode(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: code %d; want %d and %q", err, exitCode(err), c.code, c.says)
			}
		})
	}
}

func TestCausesInsideAPhaseKeepTheirCode(t *testing.T) {
	for cause, code := range map[error]int{
		record.ErrRecord: exitRecord, bucket.ErrSealKey: exitSeal, gce.ErrMetadata: exitMetadata,
		syscall.ENOSPC:    exitNoRoom,
		member.ErrRemoved: exitRemoved, errors.New("anything else"): exitFailure,
	} {
		err := &agent.PhaseError{Phase: agent.PhaseCertificates, Err: fmt.Errorf("not done within 5m: %w",
			errors.Join(errors.New("other"), cause))}
		if got := exitCode(err); got != code {
			t.Errorf("%v: code %d, want %d", err, got, code)
		}
	}
}

func TestTheBundlesErrorsHaveTheirCode(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	store := buckettest.Serve(t, dir, "c1")
	open := func(key string) *bucket.Bundles {
		b, err := bucket.OpenBundles(store, key)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if _, _, err := open("base64key://"+strings.Repeat("A", 43)+"=").Create(ctx, 1, []byte("keys")); err != nil {
		t.Fatal(err)
	}
	_, _, err := open("base64key://" + strings.Repeat("B", 42) + "A=").Newest(ctx)
	if exitCode(err) != exitSeal {
		t.Errorf("a wrong key: %v: code %d", err, exitCode(err))
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, _, err = open("base64key://" + strings.Repeat("A", 43) + "=").Newest(ctx)
	if exitCode(err) != exitRecord {
		t.Errorf("the folder is gone: %v: code %d", err, exitCode(err))
	}
}
