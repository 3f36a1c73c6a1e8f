package history

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func allEvents() []Event {
	return []Event{
		Term{},
		Session{},
		LAI{},
		Notify{},
		Role{},
		Advertised{},
		Refused{},
		Hung{},
		HW{},
		EpochStart{},
		Truncate{},
		Recovery{},
		Ready{},
		Txn{},
		Fault{},
		Obeyed{},
		Node{},
		Violation{},
		Phase{},
		Converged{},
		Harness{},
		Stall{},
	}
}

func jsonFields(event Event) []string {
	var names []string
	typ := reflect.TypeOf(event)
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// The list above holds every type with a method Kind, whatever file it is in.
func TestNoEventIsForgotten(t *testing.T) {
	packages, err := parser.ParseDir(token.NewFileSet(), ".", nil, parser.SkipObjectResolution) //nolint:staticcheck // no build tags here
	require.NoError(t, err)
	var found []string
	for _, file := range packages["history"].Files {
		for _, decl := range file.Decls {
			if method, ok := decl.(*ast.FuncDecl); ok && method.Name.Name == "Kind" && method.Recv != nil {
				found = append(found, method.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	var listed []string
	for _, event := range allEvents() {
		listed = append(listed, reflect.TypeOf(event).Name())
	}
	require.ElementsMatch(t, listed, found)
}

func TestEventsGoIntoLinesAndBack(t *testing.T) {
	op, err := NewEvent("coordinator-0", Term{Coordinator: "coordinator-0", Epoch: 3, Zxid: 77, State: TermElected})
	require.NoError(t, err)
	h, err := New([]Op{op})
	require.NoError(t, err)
	term, err := Decode[Term](h.Ops()[0])
	require.NoError(t, err)
	require.Equal(t, int64(77), term.Zxid)
}
