package rebuild

import (
	"context"
	"fmt"

	"github.com/quorate/quorate/internal/record"
	"github.com/quorate/quorate/internal/replica"
)

// Creator is what creating lost objects needs of the record: internal/record's Create methods with their contract.
type Creator interface {
	CreateInception(ctx context.Context, i record.Inception) (record.Inception, bool, error)
	CreateClaim(ctx context.Context, epoch uint64, c record.Claim) (record.Claim, bool, error)
	CreateOutcome(ctx context.Context, epoch uint64, o record.Outcome) (record.Outcome, bool, error)
	CreateIncarnation(ctx context.Context, i record.Incarnation) (record.Incarnation, bool, error)
	ConfirmIncarnation(ctx context.Context, p replica.Place, number uint64, s record.Started) (record.Started, bool,
		error)
}

// Create creates the object if it is absent. That an agent has brought the same back meanwhile is no error; that the
// record holds anything else by now is one, and then it has to be read again from the beginning.
func (l Lost) Create(ctx context.Context, r Creator) error {
	var same bool
	var err error
	switch o := l.Object.(type) {
	case record.Inception:
		_, same, err = r.CreateInception(ctx, o)
	case record.Claim:
		_, same, err = r.CreateClaim(ctx, l.Epoch, o)
	case record.Outcome:
		var got record.Outcome
		got, same, err = r.CreateOutcome(ctx, l.Epoch, o)
		same = same || got.Formed != nil && *got.Formed == *o.Formed // row 3 brings it back as well
	case record.Incarnation:
		_, same, err = r.CreateIncarnation(ctx, o)
	case record.Started:
		_, same, err = r.ConfirmIncarnation(ctx, l.Place, l.Number, o)
	default:
		return fmt.Errorf("create %s: a %T is no object of the record", l.Key, l.Object)
	}
	if err == nil && !same {
		err = fmt.Errorf("create %s: somebody has created it meanwhile: run the command once more", l.Key)
	}
	return err
}
