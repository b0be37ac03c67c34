import { expect } from 'chai';
import { type Health, type TraceNode, healthOfTree } from '../trace/tree.js';
import { traceVm } from '../trace/trace-vm.js';
import { type GivenVm, observedVm } from './observed-vm.js';

/** A story, and what its text must contain. The title completes "is wrong for …". */
export interface StoryCase {
  readonly title: string;
  readonly given: GivenVm;
  readonly health: Health;
  readonly includes: readonly string[];
  readonly excludes?: readonly string[];
}

/** Tells the story of a VM as lines: `kind name: state` for each object, and `health reason: message → remedy` for each finding. */
export function storyOf(given: GivenVm): { lines: string; health: Health } {
  const tree = traceVm(observedVm(given));
  if (tree === undefined) throw new TypeError('there is no VM');
  return { lines: linesOf(tree).join('\n'), health: healthOfTree(tree) };
}

/** Declares a test for each story. */
export function describeStories(title: string, cases: readonly StoryCase[]): void {
  describe(title, () => {
    for (const { title: subject, given, health, includes, excludes = [] } of cases) {
      it(`say ${health} for ${subject}`, () => {
        const story = storyOf(given);
        for (const text of includes) expect(story.lines).to.include(text);
        for (const text of excludes) expect(story.lines).not.to.include(text);
        expect(story.health, story.lines).to.equal(health);
      });
    }
  });
}

function linesOf(node: TraceNode, indent = ''): string[] {
  const { kind, name, state, findings, children } = node;
  const texts = findings.map(
    ({ health, reason, message, remedy }) =>
      `${indent}  ${health} ${reason ? `${reason}: ` : ''}${message}${remedy ? ` → ${remedy}` : ''}`,
  );
  return [
    `${indent}${kind}${name && ` ${name}`}: ${state}`,
    ...texts,
    ...children.flatMap((child) => linesOf(child, `${indent}  `)),
  ];
}
