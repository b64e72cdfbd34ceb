package test

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/agent"
	"github.com/quorate/quorate/internal/localgce"
)

// TestTwoReplicas: with two the second is a warm copy, so that its loss is free; with a third both become voters.
func TestTwoReplicas(t *testing.T) {
	t.Parallel()
	c := begin(t, plan{vms: []string{"master-a", "master-b"}})
	var learner string
	for _, scenario := range []struct {
		name string
		do   func(t *testing.T)
	}{
		{"one is the voter, the other stays a learner, both apiservers are ready", func(t *testing.T) {
			await(t, "a pair", c.pair)
			_, err := c.quorate(t, "kubeconfig", "--output", c.kubeconfig(), "--force")
			c.must(t, err)
			c.wantOneCluster(t)
			learner = c.learner(t)
			for _, vm := range c.vms {
				if out := c.mustKubectl(t, c.vm(vm).Address, "get", "--raw", "/readyz"); out != "ok" {
					t.Errorf("/readyz of %s: %s", vm, out)
				}
			}
			c.mustKubectl(t, c.vm(learner).Address, "create", "configmap", "kept")
			time.Sleep(3 * time.Second) // longer than a promotion takes
			c.must(t, c.pair())
		}},
		{"the learner's loss is free", func(t *testing.T) {
			l := c.startLoad(t)
			time.Sleep(time.Second)
			l.stalls()
			c.must(t, c.KillVM(t.Context(), learner))
			l.goesOn(t, "the endpoint without the learner")
			l.wantStalls(t, "the learner's power is cut")
			c.must(t, c.StartVM(t.Context(), learner))
			await(t, "a pair again", c.pair)
			l.end(t, c)
		}},
		{"a replica with the wrong seal key ends and says so, and joins when the key is right", func(t *testing.T) {
			other := make([]byte, 32)
			rand.Read(other) // never fails
			wrong := regexp.MustCompile(`base64key://\S+`).ReplaceAllString(c.document,
				"base64key://"+base64.URLEncoding.EncodeToString(other))
			c.must(t, c.SetAttribute(learner, agent.ClusterAttribute, &wrong))
			c.must(t, c.RecreateVM(t.Context(), learner, localgce.Recreation{Wipe: true}))
			c.wantEndOf(t, learner, 6, "seal")
			if strings.Contains(c.logOf(learner), base64.URLEncoding.EncodeToString(other)) {
				t.Error("the key is in the log")
			}
			c.must(t, c.SetAttribute(learner, agent.ClusterAttribute, &c.document))
			await(t, "a pair again", c.pair)
			c.wantOneCluster(t)
		}},
		{"a third is there, and all are voters", func(t *testing.T) {
			c.must(t, c.shut())
			c.document = strings.Replace(c.document, "replicas: 2", "replicas: 3", 1)
			c.vms = append(c.vms, "master-c")
			c.conf = c.project()
			c.open(t)
			c.setDocument(t, c.document)
			await(t, "whole", c.whole)
			c.wantOneCluster(t)
			c.mustKubectl(t, c.vm("master-c").Address, "get", "configmap", "kept")
		}},
	} {
		ok := t.Run(scenario.name, func(t *testing.T) {
			t.Cleanup(func() { c.tell(t) })
			scenario.do(t)
		})
		if !ok {
			t.Fatal("the cases after this one need a pair")
		}
	}
}

// pair says what is missing to one voter and one learner with ready apiservers.
func (c *cluster) pair() error {
	for _, vm := range c.vms {
		s, err := c.status(vm)
		if err != nil {
			return err
		}
		learners := 0
		for _, m := range s.Etcd.Members {
			if m.Role == "learner" && m.Started {
				learners++
			}
		}
		if !s.Replica.Ready || len(voters(s)) != 1 || learners != 1 || len(s.Etcd.Members) != 2 ||
			component(s, "kube-apiserver") != "ready" {
			return fmt.Errorf("%s is in phase %s, its apiserver %s, sees %+v, is blocked: %+v",
				vm, s.Replica.Phase, component(s, "kube-apiserver"), s.Etcd.Members, s.Blocked)
		}
	}
	if s := c.Status(); len(s.Backends) != 2 || s.FailOpen {
		return fmt.Errorf("the endpoint is balanced over %q", s.Backends)
	}
	return nil
}

// learner is the VM whose member is the learner.
func (c *cluster) learner(t *testing.T) string {
	t.Helper()
	s, err := c.status(c.vms[0])
	c.must(t, err)
	for _, m := range s.Etcd.Members {
		if m.Role == "learner" {
			return placeName(m.Name)
		}
	}
	t.Fatal("no learner")
	return ""
}
