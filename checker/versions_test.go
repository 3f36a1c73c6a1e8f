package checker

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// versioned is the state of a versioned register for Porcupine. Fuzzy: a write of
// unknown outcome has raised the version by an amount that nobody has seen yet.
type versioned struct {
	version int64
	value   int32
	fuzzy   bool
}

func versionModel(dense bool) Model[versioned, versionOp, struct{}] {
	return Model[versioned, versionOp, struct{}]{
		Init: func() versioned { return versioned{} },
		Step: func(s versioned, op versionOp, _ struct{}) (bool, versioned) {
			switch {
			case op.Write && op.Version == unknownVersion && dense:
				return true, versioned{s.version + 1, op.Value, false}
			case op.Write && op.Version == unknownVersion:
				return true, versioned{s.version, op.Value, true}
			case op.Write && dense:
				return op.Version == s.version+1, versioned{op.Version, op.Value, false}
			case op.Write:
				return op.Version > s.version, versioned{op.Version, op.Value, false}
			case op.Value != unknownValue && op.Value != s.value:
				return false, s
			case s.fuzzy:
				return op.Version > s.version, versioned{op.Version, s.value, false}
			default:
				return op.Version == s.version, s
			}
		},
		Equal: func(a, b versioned) bool { return a == b },
	}
}

func randomVersions(r *rand.Rand, dense bool) []versionOp {
	rec := recipe{
		N: 3 + r.IntN(14), Clients: 2 + r.IntN(4), Keys: 1, Values: []int{0, 2, 3}[r.IntN(3)], Read: 0.5, Write: 0.5, Late: 3,
		Crash: []float64{0, 0.15, 0.3}[r.IntN(3)], Seed: r.Uint64(),
	}
	drawn := rec.draw()
	order := make([]int, len(drawn))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case drawn[a].effect < drawn[b].effect:
			return -1
		case drawn[a].effect > drawn[b].effect:
			return 1
		}
		return 0
	})
	versions := make([]int64, len(drawn))
	version := int64(0)
	for _, i := range order {
		if drawn[i].kind == opWrite && drawn[i].applied {
			if version++; !dense {
				version += int64(r.IntN(3))
			}
		}
		versions[i] = version
	}
	spans := spansOf(drawn)
	ops := make([]versionOp, len(spans))
	for i, s := range spans {
		ops[i] = versionOp{s.Call, s.Ret, versions[i], s.Value, s.Kind == opWrite}
		if s.crashed() {
			ops[i].Version = unknownVersion
		}
		if !ops[i].Write && r.IntN(6) == 0 {
			ops[i].Value = unknownValue
		}
	}
	for range r.IntN(4) {
		if len(ops) == 0 {
			break
		}
		op := &ops[r.IntN(len(ops))]
		switch {
		case op.Version == unknownVersion:
		case r.IntN(3) > 0:
			op.Version = max(0, op.Version+int64(r.IntN(3)-1))
		case !op.Write:
			op.Value = int32(r.IntN(4))
		}
	}
	return ops
}

func compareVersions(t *testing.T, seed uint64) answer {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))
	dense := r.IntN(2) == 0
	ops := randomVersions(r, dense)
	got := judgeVersions(ops, 0, dense)
	operations := make([]Operation[versionOp, struct{}], len(ops))
	for i, op := range ops {
		operations[i] = Operation[versionOp, struct{}]{Client: i, Input: op, Call: int64(op.Call), Return: int64(op.Ret)}
		if op.Ret == forever {
			operations[i].Return = Never
		}
	}
	want := porcupineSays(versionModel(dense), operations, 0)
	if a := got.answer(); a != notAsked && a != want {
		t.Fatalf("seed %d: versions say %v (%+v, dense %v), Porcupine %v: %+v", seed, a, got, dense, want, ops)
	}
	return got.answer()
}

func FuzzVersions(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { compareVersions(t, seed) })
}

func TestVersionsTakeRepeatedValuesAndDeletes(t *testing.T) {
	ops := []versionOp{
		{0, 1, 1, 5, true},
		{2, 3, 2, initial, true}, // a delete
		{4, 5, 3, 5, true},
		{6, 7, 3, 5, false},
	}
	require.Equal(t, versionsLegal, judgeVersions(ops, 0, true).fault)
	ops[3].Version = 1 // the value is right, the version is stale
	require.Equal(t, versionsOrder, judgeVersions(ops, 0, true).fault)
}
