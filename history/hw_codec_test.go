package history

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHighWatermarksLookAsEncodingJSONWritesThem(t *testing.T) {
	for _, e := range []HW{
		{},
		{"registers#1/3", 2, 4_000_000_017, 12, 99, 100, true},
		{"a\"b\\cé\n", -1, math.MinInt64, -7, math.MaxInt64, 0, false},
		{Bucket: "b", From: math.MaxInt64 / 100, To: math.MaxInt64/100 + 1},
	} {
		want, err := json.Marshal(e)
		require.NoError(t, err)
		op, err := NewEvent("tablet-0", e)
		require.NoError(t, err)
		require.Equal(t, string(want), string(op.Value))
		got, err := Decode[HW](op)
		require.NoError(t, err)
		require.Equal(t, e, got)
	}
}

func FuzzHighWatermarks(f *testing.F) {
	f.Add([]byte(`{"bucket":"b","server":1,"incarnation":2,"leader_epoch":3,"from":4,"to":-5,"leading":true}`))
	f.Add([]byte(`{"bucket":"b","server":01,"incarnation":2,"leader_epoch":3,"from":4,"to":5,"leading":true}`))
	f.Add([]byte(`{"bucket":"b\n","server":1,"incarnation":2,"leader_epoch":3,"from":4,"to":-0,"leading":false}`))
	f.Add([]byte(`{"to":5}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		var plain, want HW
		if !plainHW(value, &plain) {
			return
		}
		err := json.Unmarshal(value, &want)
		require.NoError(t, err, "%q", value)
		require.Equal(t, want, plain)
	})
}
