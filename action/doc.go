// Package action holds what an agent can do for its callers: actions that are named,
// described, validated, permissioned and limited, and a registry that executes them.
//
// An [Action] says what a program does, what it takes and returns, which permissions it
// needs and how often it may run. A [Registry] keeps actions with their handlers and lets
// nothing past its checks. [Registry.Execute] makes them in this order:
//
//  1. the action is known,
//  2. the user has every permission that the action needs,
//  3. the parameters fit the action's schema,
//  4. the user has not used up the action's rate limit,
//  5. the handler runs, and its result fits what the action says it returns.
//
// A refusal by one of the first four is an error of Execute. A handler that fails is a
// [Result] without success. Both carry an [*Error] with a code of a closed set; what
// else went wrong inside is for the log and never for the caller.
//
// A program can use this package by itself. In an agent, the actions that agent.yaml
// lists are capabilities like any other: peers call them through RequestAgent, which
// makes the same checks on its own path (package rpc/callee). docs/actions.md is the
// guide.
package action
