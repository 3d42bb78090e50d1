package pipeline

import (
	"cmp"
	"errors"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// Code names a kind of finding. `appliance explain CODE` says more about it.
type Code string

// The codes of what is found in a configuration.
const (
	CodeSyntax            Code = "syntax"
	CodeExpression        Code = "expression"
	CodeUnreadable        Code = "unreadable"
	CodeEmpty             Code = "empty-directory"
	CodeUnknownArgument   Code = "unknown-argument"
	CodeUnknownBlock      Code = "unknown-block"
	CodeUnknownComponent  Code = "unknown-component"
	CodeUnknownFunction   Code = "unknown-function"
	CodeUnknownReference  Code = "unknown-reference"
	CodeUnset             Code = "unset-variable"
	CodeLabels            Code = "wrong-labels"
	CodeDuplicateName     Code = "duplicate-name"
	CodeDuplicateBlock    Code = "duplicate-block"
	CodeMissingArgument   Code = "missing-argument"
	CodeWrongType         Code = "wrong-type"
	CodeInvalidValue      Code = "invalid-value"
	CodeBloblang          Code = "bloblang"
	CodeEngine            Code = "engine"
	CodeDeprecated        Code = "deprecated"
	CodeUnused            Code = "unused"
	CodeSecretTooShort    Code = "secret-too-short"
	CodeKeyMissing        Code = "key-missing"
	CodeAuthOff           Code = "auth-off"
	CodeSharedGroup       Code = "shared-group"
	CodeDeadLetterLoop    Code = "dead-letter-loop"
	CodeNoDeadLetters     Code = "no-dead-letters"
	CodeCompactedLetters  Code = "compacted-dead-letters"
	CodeLatestBeforeStore Code = "latest-before-ledger"
	CodeRecordsDropped    Code = "records-dropped"
	CodeBatchDivided      Code = "batch-divided"
	CodeUndecoded         Code = "undecoded-ledger"
	CodeNotOutermost      Code = "not-outermost"
	CodeFixedProperty     Code = "fixed-property"
	CodePooledDirect      Code = "pooled-without-direct-url"
	CodeLanesWait         Code = "lanes-exceed-connections"
	CodeDrainTooLong      Code = "drain-exceeds-shutdown"
)

// Explanation says what a code means and what to do.
type Explanation struct {
	Code    Code   `json:"code"`
	Title   string `json:"title"`
	Meaning string `json:"meaning"`
	Action  string `json:"action"`
}

// Explanations returns the catalogue, one per code, sorted by code.
func Explanations() []Explanation {
	all := append(languageExplanations(), meaningExplanations()...)
	slices.SortFunc(all, func(a, b Explanation) int { return cmp.Compare(a.Code, b.Code) })
	return all
}

func languageExplanations() []Explanation {
	return []Explanation{
		{CodeSyntax, "The text is no HCL", "The parser stopped at this place; what follows in the file was not read.", "Look at the brackets, quotes and heredoc ends before the place."},
		{CodeExpression, "An expression has no value", "A function refused its arguments, or an operator its operands.", "Read the detail; the range shows the part that failed."},
		{CodeUnreadable, "A file cannot be read", "A configuration is the .hcl files of one directory.", "Check the path and the permissions."},
		{CodeEmpty, "Nothing to run", "The directory has no .hcl file, or its files have no block.", "Name a directory with a configuration, or none for the shipped one."},
		{CodeUnknownArgument, "No such argument", "The block or component does not know the argument; nothing is ignored.", "Take the suggestion, or see docs/components."},
		{CodeUnknownBlock, "No such block", "The language or the component does not know the block; nothing is ignored.", "Take the suggestion. Some things are arguments: name = value."},
		{CodeUnknownComponent, "No such component", "Neither the engine's core nor this program has a component of the kind and name.", "Take the suggestion, or see docs/components."},
		{CodeUnknownFunction, "No such function", "Functions of mappings are not functions of HCL. An engine interpolation is written $${! … } in HCL.", "Take the suggestion."},
		{CodeUnknownReference, "Reference to nothing", "No block declares the name.", "Declare it, or take the suggestion. References are var.x, local.x, kafka.x, postgres.x, dead_letters.x, topic.x and pipeline.x."},
		{CodeUnset, "An environment variable is not set", "env(name) without a default fails where the variable is not set, in lint as in run.", "Set the variable, or give a default: env(name, \"…\")."},
		{CodeLabels, "Wrong number of labels", "The labels of a block name it or its component.", "Write the form that the detail shows."},
		{CodeDuplicateName, "One name, twice", "Names are unique across all files of a directory; neither block is applied.", "Rename or remove one."},
		{CodeDuplicateBlock, "One block, twice", "The block may stand once.", "Join the two."},
		{CodeMissingArgument, "An argument is missing", "It has no default.", "Give it."},
		{CodeWrongType, "Wrong type", "The value has another type than the argument. The engine itself would notice only when it runs.", "Write the type that the detail names."},
		{CodeInvalidValue, "The value cannot be", "The type is right, the value is not.", "Read the detail for what is admitted."},
		{CodeBloblang, "A mapping does not parse", "The engine's parser refused the mapping or interpolation; the position is inside it.", "Correct the mapping. In HCL, ${ is written $${ and %{ is written %%{."},
		{CodeEngine, "The engine refuses it", "The engine's own rules for the component refused the configuration.", "Read the detail."},
		{CodeDeprecated, "Deprecated", "It works and will go.", "Use what replaces it."},
		{CodeUnused, "Declared and not used", "Nothing refers to the name.", "Remove it, or correct the reference that should have named it."},
	}
}

func meaningExplanations() []Explanation {
	return []Explanation{
		{CodeSecretTooShort, "A secret is too short", "HMAC keys under 32 characters can be guessed from one token.", "Generate one: openssl rand -base64 48."},
		{CodeKeyMissing, "A key is missing", "The algorithm needs a key: secret for HS*, public_key for RS*.", "Give it, or set enabled = false where nobody else can reach the port."},
		{CodeAuthOff, "The admin API is open", "Anyone who can reach the port can stop, seek and replay.", "Set auth.enabled to true wherever others can reach the port."},
		{CodeSharedGroup, "Two pipelines in one consumer group", "The group's partitions would be shared out between them, and each would see a part of the records.", "Give each pipeline its own group."},
		{CodeDeadLetterLoop, "Dead letters go to the topic they come from", "Each dead letter would be read again and fail again, for ever.", "Use another topic, or no dead_letters in a pipeline that indexes them."},
		{CodeNoDeadLetters, "No way to a dead letter", "A message that fails is given back to the input and stops its partition until it succeeds.", "Set dead_letters on an output that has it."},
		{CodeCompactedLetters, "A dead-letter topic is compacted", "Its key is the origin; a recreated origin topic would overwrite the letters of the one before.", "Set cleanup_policy to delete."},
		{CodeLatestBeforeStore, "A ledger that begins at the end", "A new or rebuilt group would skip everything published before it, silently.", "Leave start at earliest."},
		{CodeRecordsDropped, "A processor drops or merges records ahead of a ledger", "The ledger accounts for each record: one that a processor dropped becomes a dead letter.", "Route records instead of dropping them, or expect the dead letters."},
		{CodeUndecoded, "A ledger without its decoder or its input", "The ledger writes events that cloudevents_decode made of records of a kafka input, and commits their offsets; it has no use for other messages.", "Read with input \"kafka\", and put processor \"cloudevents_decode\" {} first."},
		{CodeBatchDivided, "A processor divides or rebuilds batches ahead of a ledger", "The ledger gets a batch as it was read, or it takes the records of the other parts for dropped and makes dead letters of good ones.", "Remove it, or do that work in a second pipeline with its own group."},
		{CodeNotOutermost, "A component that cannot stand inside another", "The kafka input and the ledger deal in whole batches and in the group's subscription: they are a pipeline's input and output themselves.", "Take it out; for a second use of the records declare a second pipeline with its own group."},
		{CodeFixedProperty, "A property that is fixed", "Properties that decide whether records are lost are not configuration, and those unknown here would be ignored.", "Remove it."},
		{CodePooledDirect, "A pooler without a way past it", "Migrations and leases need a session, which transaction pooling does not give.", "Set direct_url."},
		{CodeLanesWait, "More lanes than connections", "Each lane writes over a connection of its own; the others wait.", "Raise write_pool.max_connections or lower lanes."},
		{CodeDrainTooLong, "The drain does not fit into the shutdown", "The process would be ended before its pipelines could finish what is in flight; it is repeated at the next start.", "Raise shutdown.timeout above drain_delay and drain_timeout together."},
	}
}

// CodeOf returns the code of a diagnostic, also of those that HCL itself made.
func CodeOf(d *hcl.Diagnostic) Code {
	if code, ok := d.Extra.(Code); ok {
		return code
	}
	if call, ok := hcl.DiagnosticExtra[hclsyntax.FunctionCallDiagExtra](d); ok {
		if _, unset := errors.AsType[*unsetError](call.FunctionCallError()); unset {
			return CodeUnset
		}
	}
	switch d.Summary {
	case "Call to unknown function":
		return CodeUnknownFunction
	case "Unknown variable", "Unsupported attribute", "Variables not allowed":
		return CodeUnknownReference
	case "Error in function call", "Invalid function argument", "Invalid operand", "Not enough function arguments",
		"Too many function arguments", "Invalid template interpolation value", "Invalid index", "Unsuitable value type":
		return CodeExpression
	default:
		return CodeSyntax
	}
}
