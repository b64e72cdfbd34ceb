package controlplane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/replica"
	"github.com/quorate/quorate/supervisor"
)

// program writes a shell script that stands in for a component.
func program(t *testing.T, script string, perm os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckBinary(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		name, component, path string
		want                  []string // parts of the error; none: no error
	}{
		{"the pinned version", replica.APIServer, program(t, "echo Kubernetes v1.36.3", 0o755), nil},
		{"another patch release", replica.Scheduler, program(t, "echo Kubernetes v1.36.11", 0o755), nil},
		{"a vendor's build", replica.Scheduler, program(t, "echo Kubernetes v1.36.3-gke.100", 0o755), nil},
		{"a component of the operator's own has any version", "mine", program(t, "exit 3", 0o755), nil},
		{"missing", replica.APIServer, filepath.Join(dir, "absent"), []string{filepath.Join(dir, "absent"),
			"no such file", "components.kube-apiserver.binary"}},
		{"not executable", replica.APIServer, program(t, "", 0o644),
			[]string{"is not an executable file (-rw-r--r--)"}},
		{"a folder", "mine", dir, []string{dir + " is not an executable file"}},
		{"an older minor version", replica.ControllerManager, program(t, "echo Kubernetes v1.35.4", 0o755),
			[]string{"is Kubernetes v1.35.4; allowed: v1.36.x"}},
		{"a version that only begins like it", replica.ControllerManager, program(t, "echo Kubernetes v1.360.1", 0o755),
			[]string{"is Kubernetes v1.360.1; allowed: v1.36.x"}},
		{"another program", replica.APIServer, program(t, "echo etcd Version: 3.7.3", 0o755),
			[]string{`says "etcd Version: 3.7.3\n"; allowed: Kubernetes v1.36.x`}},
		{"a program that fails", replica.APIServer, program(t, "exit 3", 0o755), []string{"--version: exit status 3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := CheckBinary(t.Context(), supervisor.Spec{Name: tc.component, Path: tc.path}, KubernetesMinor)
			if len(tc.want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrBinary) {
				t.Fatalf("got %v, want an ErrBinary", err)
			}
			for _, part := range append(tc.want, "check "+tc.component) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("got %q, want %q in it", err, part)
				}
			}
		})
	}
}

// TestCheckBinaryEnds: a hung program holds nobody up longer than the caller allows, and is not called unusable.
func TestCheckBinaryEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := CheckBinary(ctx, supervisor.Spec{Name: replica.APIServer, Path: program(t, "exec sleep 60", 0o755)},
		KubernetesMinor)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrBinary) {
		t.Errorf("got %v, want the deadline", err)
	}
}
