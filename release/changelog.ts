import { posix } from 'node:path';

/** https://keepachangelog.com/en/1.1.0 */
const CATEGORIES = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];
const UNRELEASED = 'Unreleased';

interface Section {
  /** `Unreleased`, or a version. */
  readonly name: string;
  readonly date: string | undefined;
  readonly body: string;
}

function sectionsOf(changelog: string): Section[] {
  return changelog
    .split(/^## /m)
    .slice(1)
    .map((text) => {
      const [heading = '', ...lines] = text.split('\n');
      const [name = '', date] = heading.split(' - ');
      return { name, date, body: lines.join('\n').trim() };
    });
}

/** Finds deviations from Keep a Changelog. */
export function problemsOfChangelog(changelog: string): string[] {
  const sections = sectionsOf(changelog);
  const problems = sections[0]?.name === UNRELEASED ? [] : [`the first section is not "## ${UNRELEASED}"`];
  for (const { name, date, body } of sections) {
    if (name !== UNRELEASED && !/^\d+\.\d+\.\d+$/.test(name)) problems.push(`"${name}" is not a version`);
    if (name !== UNRELEASED && !/^\d{4}-\d\d-\d\d$/.test(date ?? '')) problems.push(`${name} has no date`);
    const categories = [...body.matchAll(/^### (.*)$/gm)].map(([, category = '']) => category);
    const expected = CATEGORIES.filter((category) => categories.includes(category));
    if (categories.join() !== expected.join())
      problems.push(`${name} has the headings ${categories.join(', ')}: use ${CATEGORIES.join(', ')}, each once`);
    if (/^### .*\n+(?=###? |$(?![^]))/m.test(`${body}\n`)) problems.push(`${name} has an empty heading`);
  }
  const names = sections.map(({ name }) => name);
  if (new Set(names).size < names.length) problems.push('two sections have the same name');
  return problems;
}

/**
 * The part of the changelog that belongs to a version. A pre-release has no section: it gets what is not yet released.
 * @returns undefined if there is none
 */
export function notesOf(changelog: string, version: string): string | undefined {
  const wanted = version.includes('-') ? UNRELEASED : version;
  return sectionsOf(changelog).find(({ name, body }) => name === wanted && body !== '')?.body;
}

/** Turns "Unreleased" into the section of a version, below a new "Unreleased". */
export function cutRelease(changelog: string, version: string, date: string): string {
  if (sectionsOf(changelog).some(({ name }) => name === version)) return changelog;
  return changelog.replace(/^## Unreleased$/m, `## ${UNRELEASED}\n\n## ${version} - ${date}`);
}

/** Makes links to files absolute, because release notes are read outside of the tree. */
export function withAbsoluteLinks(markdown: string, repository: string, version: string): string {
  return markdown.replace(/\]\((?![a-z]+:|#)([^)]*)\)/g, (_, target: string) => {
    return `](${repository}/blob/v${version}/${posix.normalize(target)})`;
  });
}
