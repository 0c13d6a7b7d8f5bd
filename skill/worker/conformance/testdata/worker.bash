#!/usr/bin/env bash
# A worker in bash, from docs/worker-protocol.md alone. It serves one call at a time and needs no
# program beside the shell: "scan" finds the members of an object in JSON text, and values travel
# as they are written.
LC_ALL=C
shopt -s extglob

# scan TEXT: sets member[name]=raw value for the object that TEXT is.
declare -A member
scan() {
  local text=$1 name start depth=0 i=1 c key=1 n=${#1}
  member=()
  start=1
  while ((i < n)); do
    c=${text:i:1}
    case $c in
      '"')
        local rest=${text:i+1} head from=$i
        while :; do # up to the quote that no odd number of backslashes precedes
          [[ $rest =~ ^[^\"]* ]] && head=${BASH_REMATCH[0]}
          i=$((i + ${#head} + 1))
          local slashes=${head##*[!\\]}
          rest=${rest:${#head}+1}
          ((${#slashes} % 2)) || break
        done
        if ((depth == 0 && key)); then name=${text:from+1:i-from-1}; fi ;;
      ':') if ((depth == 0 && key)); then key=0 start=$((i + 1)); fi ;;
      '{' | '[') ((depth++)) ;;
      '}' | ']' | ',')
        if ((depth == 0)) && [[ $c != ']' ]]; then
          ((key)) || member[$name]=${text:start:i-start}
          key=1
        elif [[ $c != ',' ]]; then
          ((depth--))
        fi ;;
    esac
    ((i++))
  done
}

say() { printf '%s\n' "{\"jsonrpc\":\"2.0\",$1}"; }
answer() { say "\"id\":$1,\"result\":{\"answer\":$2}"; }
failure() { say "\"id\":$1,\"error\":{\"code\":$2,\"message\":$3,\"data\":{\"retryable\":${4:-false}}}"; }

invoke() {
  local id=$1 payload all name n=0 rest
  scan "$2"
  payload=${member[payload]}
  case ${member[capability]} in
    '"check-echo"') answer "$id" "$payload" ;;
    '"check-context"')
      for name in caller callerProven correlationId messageId sessionId tenantId idempotencyKey traceparent hops deadlineMs; do
        all+=",\"$name\":${member[$name]}"
      done
      answer "$id" "{${all:1}}" ;;
    '"check-fail"') scan "$payload" && failure "$id" -32000 "${member[message]}" "${member[retryable]}" ;;
    '"check-bug"') failure "$id" -32603 "$payload" ;;
    '"check-nested"')
      say "\"id\":\"n\",\"method\":\"requestAgent\",\"params\":{\"call\":$id,\"request\":$payload}"
      while IFS= read -r rest; do # a cancel may come before
        scan "$rest"
        [[ ${member[id]} != '"n"' ]] || break
      done
      if [[ ${member[result]} ]]; then answer "$id" "${member[result]}"; else failure "$id" -32603 '"the nested call was refused"'; fi ;;
    *) failure "$id" -32603 '"it is not served"' ;;
  esac
}

echo "the worker is $$" >&2
while IFS= read -r line; do
  scan "$line"
  id=${member[id]} params=${member[params]}
  case ${member[method]} in
    '"initialize"')
      scan "$params"
      if [[ ${member[protocolVersions]} =~ [[,]\ *1\ *[],] ]]; then
        say "\"id\":$id,\"result\":{\"protocolVersion\":1,\"capabilities\":[\"check-echo\",\"check-context\",\"check-fail\",\"check-bug\",\"check-nested\"]}"
      else
        failure "$id" -32602 '"this worker speaks version 1"'
      fi ;;
    '"invoke"') invoke "$id" "$params" ;;
    '"ping"') say "\"id\":$id,\"result\":{}" ;;
    *) [[ -z $id || -z ${member[method]} ]] || failure "$id" -32601 '"there is no such method"' ;;
  esac
done
