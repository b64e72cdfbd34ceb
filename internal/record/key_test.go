package record

import (
	"testing"

	"github.com/quorate/quorate/internal/replica"
)

func TestParseKeyIsTheInverseOfTheKeys(t *testing.T) {
	p := replica.Place{Zone: "us-central1-a", Name: "m-1"}
	for key, want := range map[string]Object{
		InceptionKey:                         {Kind: InceptionObject},
		ClaimKey(7):                          {Kind: ClaimObject, Epoch: 7},
		OutcomeKey(7):                        {Kind: OutcomeObject, Epoch: 7},
		ClosedKey(7):                         {Kind: ClosedObject, Epoch: 7},
		StoppedKey(7, p, 12):                 {Kind: StoppedObject, Epoch: 7, Place: p, Number: 12},
		IncarnationKey(p, 12):                {Kind: IncarnationObject, Place: p, Number: 12},
		StartedKey(p, 12):                    {Kind: StartedObject, Place: p, Number: 12},
		MarkKey(0x8e9e05c52164694d):          {Kind: MarkObject, Member: 0x8e9e05c52164694d},
		SealedKey(3):                         {Kind: SealedObject, Number: 3},
		OrderKey(maxNumber):                  {Kind: OrderObject, Number: maxNumber},
		DoneKey(4):                           {Kind: DoneObject, Number: 4},
		AcceptedKey(4):                       {Kind: AcceptedObject, Number: 4},
		VerdictKey(4):                        {Kind: VerdictObject, Number: 4},
		VMStopKey(4, "18395952728694776415"): {Kind: VMStopObject, Number: 4, Name: "18395952728694776415"},
		DiskKey(p, 12):                       {Kind: DiskObject, Place: p, Number: 12},
		ProbeKey("x"):                        {Kind: ProbeObject},
		MarkProbeKey:                         {Kind: ProbeObject},
		"snapshots/2/1234-20260102T030405Z.db.zst": {Kind: SnapshotObject, Epoch: 2, Name: "2/1234-20260102T030405Z"},
		"snapshots/2/1234-20260102T030405Z.json": {Kind: SnapshotInfoObject, Epoch: 2,
			Name: "2/1234-20260102T030405Z"},
		"epochs":                     {Kind: MisplacedObject},
		"epochs/3":                   {Kind: MisplacedObject},
		"epochs/3/stopped":           {Kind: MisplacedObject},
		"replicas":                   {Kind: MisplacedObject},
		"replicas/us-central1-a.m-1": {Kind: MisplacedObject},
		"orders":                     {Kind: MisplacedObject},
		"snapshots/4":                {Kind: MisplacedObject},
	} {
		if got := ParseKey(key); got != want {
			t.Errorf("parseKey(%q) = %+v, want %+v", key, got, want)
		}
	}
}

func TestParseKeyRefusesWhatItWouldNotSpell(t *testing.T) {
	for _, key := range []string{"", "/", "inception.json/", "x", "epochs/01/claim.json", "epochs/0/claim.json",
		"epochs/+1/claim.json",
		"epochs/-1/claim.json", "epochs/1 /claim.json", "epochs/18446744073709551616/claim.json",
		"epochs/1/claim.json.tmp",
		"epochs/1/Claim.json", "epochs/1/x/claim.json", "epochs//claim.json", "epochs/1/stopped/z-a.m.json",
		"epochs/1/stopped/z-a.m.0.json",
		"epochs/1/stopped/m.1.json", "epochs/1/stopped/z-a.m.1", "epochs/1/stopped/x/z-a.m.1.json", "replicas/m/1.json",
		"replicas/z-a.m.x/1.json",
		"replicas/z-a.m/01.json", "replicas/z-a.m/1.started", "replicas/z-a.m/1.json/x", "marks/0.json",
		"marks/0a.json", "marks/A.json",
		"marks/1.json.json", "marks/12345678901234567.json", "bundle/1", "bundle/0.sealed", "orders/1", "orders/1.done",
		"orders/x.json", "orders/1.vm-stopped.x.json", "orders/1.vm-stopped..json",
		"orders/0.vm-stopped.7.json", "orders/1.vm-stopped.7", "replicas/z-a.m/0.disk.json",
		"snapshots/1/x-y.json", "snapshots/1/1-.json", "snapshots/1/1.json", "snapshots/1/1-t.db",
		"snapshots/1/2/1-t.json", "other/1.json",
		"replicas/us-central1-a.m\t1/1.json", "replicas/z-a.m 1/1.json", "replicas/z-a.M1/1.json",
		"replicas/z-a.m_1/1.json", "replicas/z-a.1m/1.json",
		"replicas/z-a.m-/1.json", "replicas/-a.m/1.json", "replicas/z\n-a.m/1.started.json",
		"replicas/z-a.m\u00e4/1.json", "replicas/.m/1.json",
		"epochs/", "epochs/3/", "epochs/3/stopped/", "replicas/", "replicas/us-central1-a.m-1/", "marks/", "orders/",
		"snapshots/", "snapshots/4/", "epochs/18446744073709551615/claim.json",
		OrderKey(maxNumber + 1), DoneKey(18446744073709551615), VMStopKey(maxNumber+1, "7"),
		"epochs/1/stopped/z-a.m\t1.2.json", "epochs/1/stopped/z-a.m\x1b[2J.2.json",
	} {
		if got := ParseKey(key); got.Kind != UnknownObject {
			t.Errorf("parseKey(%q) = %+v, want unknown", key, got)
		}
	}
}
