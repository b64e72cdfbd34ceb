package etcdmember

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"testing"

	"github.com/quorate/quorate/etcdmember/acts"
)

// cutAt is a moment at which an agent ended: before or after a step took effect.
type cutAt struct {
	step acts.Step
	when acts.Moment
}

func (c cutAt) String() string { return string(c.when) + " " + string(c.step) }

// cutLog is where agents have ended in a test.
type cutLog map[cutAt]bool

// want fails for each of the steps at which no agent ended, before it and after it.
func (l cutLog) want(t *testing.T, steps []acts.Step) {
	t.Helper()
	for _, s := range steps {
		for _, when := range []acts.Moment{acts.Before, acts.After} {
			if !l[cutAt{s, when}] {
				t.Errorf("no agent ended %s", cutAt{s, when})
			}
		}
	}
}

// The steps at which tests end the agent, before and after. Each list belongs to one test, which fails where it did not
// come to one of them.
var (
	seedSteps = []acts.Step{acts.StepClaim, acts.StepIncarnation, acts.StepIncarnationOnDisk, acts.StepSeedOnDisk,
		acts.StepSeedStart, acts.StepSeedMarker,
		acts.StepConfirm, acts.StepFormed, acts.StepSeedDone,
		acts.StepNoteNewestEpoch}
	abandonSteps = []acts.Step{acts.StepAbandon}
	archiveSteps = []acts.Step{acts.StepArchiveOnDisk, acts.StepArchive}
	joinSteps    = []acts.Step{acts.StepIncarnation, acts.StepIncarnationOnDisk, acts.StepRemoveFormer,
		acts.StepMarkAdding,
		acts.StepAddLearner,
		acts.StepMarkAdded, acts.StepConfirm, acts.StepMarkStarted, acts.StepStartJoined}
	restoreSteps = []acts.Step{acts.StepAccept, acts.StepStoppedOnDisk, acts.StepStopped, acts.StepSettle,
		acts.StepClose, acts.StepClaim, acts.StepRestoreMake,
		acts.StepArchiveOnDisk, acts.StepArchive, acts.StepIncarnation,
		acts.StepIncarnationOnDisk, acts.StepRestoreOnDisk, acts.StepRestoreMarker, acts.StepRestoreRename,
		acts.StepSeedStart, acts.StepConfirm,
		acts.StepFormed, acts.StepSeedDone, acts.StepCompleteOrder}
	purgeSteps    = []acts.Step{acts.StepPurgeMark, acts.StepPurgeRemove}
	survivorSteps = []acts.Step{acts.StepHandOver, acts.StepStopEtcd, acts.StepOrder}
)

// cutElsewhere are files of other packages' tests that end the agent at each step that they list or compare with.
var cutElsewhere = []string{"../agent/certificates/bundle_test.go", "ringtest/cuts_test.go"}

// A step that is new needs a test that ends the agent there.
func TestEveryStepIsCut(t *testing.T) {
	cut := map[acts.Step]bool{}
	for _, list := range [][]acts.Step{seedSteps, abandonSteps, archiveSteps, joinSteps, restoreSteps, survivorSteps,
		purgeSteps} {
		for _, s := range list {
			cut[s] = true
		}
	}
	elsewhere := map[string]bool{}
	for _, path := range cutElsewhere {
		named := stepsCutIn(t, path)
		if len(named) == 0 {
			t.Errorf("%s ends no agent", path)
		}
		for _, name := range named {
			elsewhere[name] = true
		}
	}
	names := stepNames(t)
	for name, step := range names {
		if !cut[step] && !elsewhere[name] {
			t.Errorf("no test ends the agent at %s (%s)", name, step)
		}
	}
	if len(names) < 40 {
		t.Errorf("only %d steps were found", len(names))
	}
}

// stepsCutIn are the names of the steps in a file's lists of steps, and of those that a step is compared with.
func stepsCutIn(t *testing.T, path string) (names []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	note := func(values ...ast.Expr) {
		for _, v := range values {
			s, ok := v.(*ast.SelectorExpr)
			if !ok {
				continue
			}
			if p, ok := s.X.(*ast.Ident); ok && p.Name == "acts" {
				names = append(names, s.Sel.Name)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			if _, ok := n.Type.(*ast.ArrayType); ok {
				note(n.Elts...)
			}
		case *ast.BinaryExpr:
			if n.Op == token.EQL {
				note(n.X, n.Y)
			}
		}
		return true
	})
	return names
}

// stepNames are the steps of acts/steps.go by the names of their constants.
func stepNames(t *testing.T) map[string]acts.Step {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "acts/steps.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]acts.Step{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		if kind, ok := v.Type.(*ast.Ident); !ok || kind.Name != "Step" {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		out[v.Names[0].Name] = acts.Step(text)
		return true
	})
	return out
}
