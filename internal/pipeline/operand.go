package pipeline

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// operand is what is bound to a field: an expression as it was written, whose parts have positions of their own, or a
// value that came out of one.
type operand struct {
	expr  hcl.Expression // nil for a value
	value cty.Value
	at    hcl.Range
}

func written(expr hcl.Expression) operand { return operand{expr: expr, at: expr.Range()} }

type pair struct {
	key   string
	keyAt hcl.Range
	item  operand
}

// evaluate returns the operand's value.
func (o operand) evaluate(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if o.expr == nil {
		return o.value, nil
	}
	return o.expr.Value(ctx)
}

// resolve turns an expression that is no literal object or list into its value, keeping its position.
func (o operand) resolve(ctx *hcl.EvalContext) (operand, hcl.Diagnostics) {
	v, diags := o.evaluate(ctx)
	return operand{value: v, at: o.at}, diags
}

// unwrapped takes parentheses off.
func (o operand) unwrapped() operand {
	if p, ok := o.expr.(*hclsyntax.ParenthesesExpr); ok {
		return operand{expr: p.Expression, at: o.at}.unwrapped()
	}
	return o
}

// elements returns the items of a list, tuple or set. known is false of a null, which is as good as nothing written, and of
// what an earlier error left unknown; ok is false where the operand is something else.
func (o operand) elements(ctx *hcl.EvalContext) (items []operand, known, ok bool, diags hcl.Diagnostics) {
	o = o.unwrapped()
	if tuple, static := o.expr.(*hclsyntax.TupleConsExpr); static {
		for _, e := range tuple.Exprs {
			items = append(items, written(e))
		}
		return items, true, true, nil
	}
	o, diags = o.resolve(ctx)
	if !o.value.IsKnown() || o.value.IsNull() {
		return nil, false, false, diags
	}
	v, marks := o.value.Unmark()
	if !(v.Type().IsTupleType() || v.Type().IsListType() || v.Type().IsSetType()) {
		return nil, true, false, diags
	}
	for it := v.ElementIterator(); it.Next(); {
		_, item := it.Element()
		items = append(items, operand{value: item.WithMarks(marks), at: o.at})
	}
	return items, true, true, diags
}

// pairs returns the attributes of an object or the elements of a map; known and ok as for elements.
func (o operand) pairs(ctx *hcl.EvalContext) (pairs []pair, known, ok bool, diags hcl.Diagnostics) {
	o = o.unwrapped()
	if cons, static := o.expr.(*hclsyntax.ObjectConsExpr); static {
		pairs, diags = literalPairs(cons, ctx)
		return pairs, true, true, diags
	}
	o, diags = o.resolve(ctx)
	if !o.value.IsKnown() || o.value.IsNull() {
		return nil, false, false, diags
	}
	v, marks := o.value.Unmark()
	if !(v.Type().IsObjectType() || v.Type().IsMapType()) {
		return nil, true, false, diags
	}
	for it := v.ElementIterator(); it.Next(); {
		key, item := it.Element()
		pairs = append(pairs, pair{plain(key).AsString(), o.at, operand{value: item.WithMarks(marks), at: o.at}})
	}
	return pairs, true, true, diags
}

func literalPairs(cons *hclsyntax.ObjectConsExpr, ctx *hcl.EvalContext) (pairs []pair, diags hcl.Diagnostics) {
	for _, item := range cons.Items {
		key, more := item.KeyExpr.Value(ctx)
		diags = append(diags, more...)
		key = plain(key)
		if more.HasErrors() || !key.IsKnown() || key.IsNull() || key.Type() != cty.String {
			continue
		}
		pairs = append(pairs, pair{key.AsString(), item.KeyExpr.Range(), written(item.ValueExpr)})
	}
	return pairs, diags
}
