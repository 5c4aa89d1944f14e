"""Runs a file's unittest cases, and reports each as GoogleTest would (to the path in GTEST_OUTPUT), so that run-tests counts and
names them like all others, skipped ones too."""
import os
import time
import unittest
import xml.etree.ElementTree as ElementTree


# "", "address,undefined" or "thread".
SANITIZER = os.environ.get("TEST_SANITIZER", "")


def in_plain_builds(case):
    """For a case about what is the same in all builds: values, times, counts, messages. In sanitised builds there is no such case."""
    return case if not SANITIZER else None


def not_under_asan(case):
    """For a case with threads that ThreadSanitizer is to see; AddressSanitizer has others on the same code."""
    return case if SANITIZER in ("", "thread") else None


def not_under_tsan(case):
    """For a case that runs no more threads than others that ThreadSanitizer sees."""
    return case if SANITIZER != "thread" else None


class _Result(unittest.TextTestResult):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.cases = []
        self.began = 0

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def _note(self, test, child=None, message=""):
        kind, _, name = test.id().removeprefix("__main__.").partition(".")
        case = ElementTree.Element("testcase", classname=kind, name=name, status="run",
                                     time=f"{time.monotonic() - self.began:.3f}")
        if child:
            ElementTree.SubElement(case, child, message=message)
        self.cases.append(case)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._note(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self._note(test, "failure", str(err[1]))

    def addError(self, test, err):
        super().addError(test, err)
        self._note(test, "failure", str(err[1]))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._note(test, "skipped", reason)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self._note(subtest, "failure", str(err[1]))


def _printable(text):
    return "".join(c if c in "\n\t" or c >= " " else "?" for c in text)


def main():
    program = unittest.main(module="__main__", exit=False, testRunner=unittest.TextTestRunner(resultclass=_Result, verbosity=2))
    output = os.environ.get("GTEST_OUTPUT", "")
    if output.startswith("xml:"):
        suite = ElementTree.Element("testsuites")
        for case in program.result.cases:
            for child in case:
                child.set("message", _printable(child.get("message")))
            suite.append(case)
        os.makedirs(os.path.dirname(output[4:]), exist_ok=True)
        ElementTree.ElementTree(suite).write(output[4:])
    raise SystemExit(0 if program.result.wasSuccessful() else 1)
